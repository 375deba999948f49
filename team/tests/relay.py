"""A relay between a member and the coordinator that keeps every byte it carries."""

import socket
import threading


class Relay:
    def __init__(self, port: int) -> None:
        self.target = port
        self.sent = bytearray()
        self.returned = bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                member, _ = self.listener.accept()
            except OSError:
                return
            try:
                coordinator = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                member.close()
                continue
            for source, to, kept in [
                (member, coordinator, self.sent),
                (coordinator, member, self.returned),
            ]:
                threading.Thread(target=self._carry, args=(source, to, kept), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, to: socket.socket, kept: bytearray) -> None:
        try:
            while content := source.recv(1 << 16):
                kept += content
                to.sendall(content)
        except OSError:
            pass
        finally:
            for each in (source, to):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            # The other direction closes the other one.
            source.close()

    def counts(self) -> tuple[int, int]:
        """The bytes that the member has sent and received."""
        return len(self.sent), len(self.returned)

    def close(self) -> None:
        self.listener.close()
