"""The coordinator's certificate, the members' keys and the coordinator's app, with the real Flower
over loopback."""

import datetime
import ipaddress
import shutil
import unittest
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.flower import NODE, TEAM, FlowerTest, free_port


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey, is_authority: bool
) -> bytes:
    """A certificate for this machine, of the authority or signed by it."""
    now = datetime.datetime.now(datetime.UTC)
    named = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    issuer = [x509.NameAttribute(NameOID.COMMON_NAME, "authority")]
    here = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(named))
        .issuer_name(x509.Name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .sign(by, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


class Certificate(FlowerTest):
    def file(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return str(path)

    def authority(self, name: str) -> tuple[ec.EllipticCurvePrivateKey, str]:
        key = ec.generate_private_key(ec.SECP384R1())
        return key, self.file(f"{name}.pem", certificate("authority", key, key, True))

    def key(self, name: str) -> tuple[str, str]:
        """A member's key, and the file with the public half of it."""
        key = ec.generate_private_key(ec.SECP384R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
        return self.file(name, private), self.file(f"{name}.pub", public)

    def member(self, name: str, link: int, trusted: str, key: str):
        return self.start(
            name, *NODE, "--superlink", f"127.0.0.1:{link}",
            "--root-certificates", trusted, "--auth-supernode-private-key", key,
            "--host", "127.0.0.1", "--port", str(free_port()), "--max-retries", "2",
        )

    def test_only_a_pinned_coordinator_is_spoken_to_and_only_a_known_member_listened_to(self):
        authority, trusted = self.authority("ca")
        _, foreign = self.authority("foreign")
        server = ec.generate_private_key(ec.SECP384R1())
        port = free_port()
        self.start(
            "superlink", "flower-superlink", "--host", "127.0.0.1", "--port", str(port),
            "--ssl-ca-certfile", trusted,
            "--ssl-certfile",
            self.file("server.pem", certificate("here", server, authority, False)),
            "--ssl-keyfile", self.file("server.key", pem(server)),
            "--enable-supernode-auth", "--disable-runtime-dependency-installation",
        )
        self.connect(port, f'root-certificates = "{trusted}"')
        (known, public), (unknown, _), (other, other_public) = map(self.key, "abc")
        for each in (public, other_public):
            self.flwr("supernode", "register", each, "test")
        self.assertEqual(self.states(), ["registered", "registered"])
        self.is_there(self.member("known", port, trusted, known))
        self.assertEqual(self.states(), ["online", "registered"])
        # It trusts another authority, and does not speak to this coordinator.
        pinned, told = self.member("pinned", port, foreign, other)
        refused, _ = self.member("unknown", port, trusted, unknown)
        self.wait_for("the foreign certificate is refused", lambda: pinned.poll() is not None)
        self.wait_for("the unknown key is refused", lambda: refused.poll() is not None)
        self.assertIn("CERTIFICATE_VERIFY_FAILED", told.read_text(errors="replace"))
        self.assertEqual(self.states(), ["online", "registered"])


class Apps(FlowerTest):
    """What a coordinator sends to be run at the members."""

    # Stands for Hone, and notes that it was asked.
    HONE = """#!/bin/sh
echo asked >> "$0.asked"
echo "$0: no such adapter" >&2
exit 1
"""

    def run_app(self, app: Path) -> str:
        """Returns the coordinator's log of a round that asks each member once."""
        config = (
            f'folder="{self.folder / "versions"}" rounds=1 minimum=2 patience=0 pause=0 '
            f"timeout={self.PATIENCE}"
        )
        return self.flwr("run", str(app), "test", "--run-config", config, "--stream")

    def changed_app(self, marker: Path) -> Path:
        """The package with a client app that writes a file when it is loaded."""
        app = self.folder / "changed"
        ignored = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(TEAM, app, ignore=ignored)
        client = app / "hone_team" / "client_app.py"
        client.write_text(f"open({str(marker)!r}, 'w').close()\n" + client.read_text())
        return app

    def test_only_the_installed_app_runs_at_a_member(self):
        marker, hone = self.folder / "ran", self.folder / "hone"
        hone.write_text(self.HONE)
        hone.chmod(0o755)
        self.environment["HONE_BIN"] = str(hone)
        asked = self.folder / "hone.asked"
        port = free_port()
        self.start(
            "superlink", "flower-superlink", "--insecure", "--host", "127.0.0.1",
            "--port", str(port), "--disable-runtime-dependency-installation",
        )
        self.connect(port, "insecure = true")
        members = [
            self.start(
                f"member{number}", *NODE, "--insecure", "--superlink", f"127.0.0.1:{port}",
                "--host", "127.0.0.1", "--port", str(free_port()),
            )
            for number in range(2)
        ]
        for member in members:
            self.is_there(member)

        told = self.run_app(self.changed_app(marker))
        self.assertIn("The FAB could not be verified", told)
        self.assertIn("0 members, 2 are the minimum", told)
        for _, log in members:
            self.says(log, "hone_team/client_app.py has another content")
        self.assertFalse(marker.exists() or asked.exists())
        # The nodes continue, and run what is installed.
        told = self.run_app(TEAM)
        self.assertTrue(asked.exists())
        self.assertIn("Hone is not ready", told)
        self.assertNotIn("no such adapter", told)
        for _, log in members:
            self.says(log, "no such adapter")
        self.assertFalse(marker.exists())


if __name__ == "__main__":
    unittest.main()
