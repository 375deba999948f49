"""A member's node runs the app that is installed here and no other."""

import importlib
import io
import sys
import unittest
import unittest.mock
import zipfile
from pathlib import Path
from types import SimpleNamespace

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.cli.build import build_fab_from_disk
from flwr.supercore.constant import TaskType
from flwr.supercore.fab import Fab
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode import start_client_internal

from hone_team import admin, node

TEAM = Path(__file__).parents[1]
# Its package exports a function of the same name.
flower_supernode = importlib.import_module("flwr.supernode.cli.flower_supernode")


def files_of(bundle: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def bundle_of(files: dict[str, bytes], *more: tuple[str, bytes], lists_files: bool = True) -> bytes:
    """A bundle as Flower makes it, of any files."""
    content = io.BytesIO()
    if lists_files:
        files = {**files, node._MANIFEST: node._manifest(files).encode()}
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in [*files.items(), *more]:
            archive.writestr(name, text)
    return content.getvalue()


class Bundles(unittest.TestCase):
    def setUp(self):
        self.bundle = build_fab_from_disk(TEAM)
        self.files = files_of(self.bundle)

    def refused(self, bundle: bytes, reason: str) -> None:
        with self.assertLogs("flwr") as logs:
            self.assertFalse(node.is_installed(bundle))
        self.assertIn(reason, logs.output[0])
        self.assertIn("install it here", logs.output[0])

    def test_the_bundle_that_flower_makes_of_this_package_is_accepted(self):
        self.assertTrue(node.is_installed(self.bundle))
        self.assertTrue(node.is_installed(bundle_of(self.files)))
        modules = {f"hone_team/{path.name}" for path in (TEAM / "hone_team").glob("*.py")}
        self.assertEqual(set(self.files), modules | {"pyproject.toml", ".info/CONTENT"})

    def test_other_settings_of_the_coordinator_are_accepted(self):
        project = self.files["pyproject.toml"].replace(b"rounds = 10", b"rounds = 11")
        self.assertNotEqual(project, self.files["pyproject.toml"])
        self.assertTrue(node.is_installed(bundle_of({**self.files, "pyproject.toml": project})))

    def test_another_byte_or_file_is_refused(self):
        guard = self.files["hone_team/guard.py"]
        changed = {**self.files, "hone_team/guard.py": guard.replace(b"2", b"1", 1)}
        self.refused(bundle_of(changed), "hone_team/guard.py")
        for name in ("numpy.py", "hone_team/sub/x.py", "hone_team/", "hone_team/x.so", "/x.py",
                     "../x.py", "hone_team/README.md"):
            self.refused(bundle_of({**self.files, name: b""}), name)
        for name in self.files:
            less = {each: text for each, text in self.files.items() if each != name}
            self.refused(bundle_of(less, lists_files=False), name)

    def test_two_files_of_one_name_are_refused(self):
        name = "hone_team/guard.py"
        with self.assertWarns(UserWarning):
            twice = bundle_of(self.files, (name, b"raise SystemExit"))
        self.refused(twice, "two files of one name")

    def test_another_component_name_or_version_is_refused(self):
        project = self.files["pyproject.toml"]
        for before, after in [
            (b"hone_team.client_app:app", b"hone_team.server_app:app"),
            (b"hone_team.client_app:app", b"os:system"),
            (b'name = "hone-team"', b'name = "other"'),
            (b'version = "0.1.0"', b'version = "0.1.0/../../x"'),
            (b'publisher = "hone"', b'publisher = ".."'),
            (b"[tool.flwr.app", b"[tool.other.app"),
            (b"[project]", b"[project"),
        ]:
            with self.subTest(after=after):
                changed = project.replace(before, after)
                self.assertNotEqual(changed, project)
                self.refused(bundle_of({**self.files, "pyproject.toml": changed}), "")

    def test_a_list_that_names_other_files_is_refused(self):
        listed = self.files[".info/CONTENT"] + b"\n/dev/zero,00,0"
        bundle = bundle_of({**self.files, ".info/CONTENT": listed}, lists_files=False)
        self.refused(bundle, ".info/CONTENT")

    def test_what_is_too_large_or_no_bundle_is_refused_unread(self):
        large = bytes(64 << 20)
        bomb = bundle_of({**self.files, "hone_team/guard.py": large})
        self.assertLess(len(bomb), node.BUNDLE_BYTES_MAX)
        with unittest.mock.patch.object(zipfile.ZipFile, "read") as read:
            self.refused(bomb, "more than")
            self.refused(self.bundle + bytes(node.BUNDLE_BYTES_MAX), "more than")
            read.assert_not_called()
        for content in (b"", b"PK", self.bundle[:-30], self.bundle[30:], b"x" * 1000):
            self.refused(content, "cannot be read")


class Flower(unittest.TestCase):
    """The place in Flower at which bundles are compared."""

    def internal(self) -> SimpleNamespace:
        def pull(**given):
            given["get_run"](7)
            fab = given["get_fab"]("hash", 7)
            is_checked = given["trusted_entities"] and fab.verifications.get("valid_license")
            return bool(is_checked and internal._verify_fab(fab, given["trusted_entities"]))

        internal = SimpleNamespace(
            _pull_and_store_message=pull, _verify_fab=lambda *_: True, FAB_VERIFICATION_ERROR=None
        )
        return internal

    def test_a_bundle_is_compared_whatever_the_coordinator_says(self):
        internal = self.internal()
        node.install(internal)
        good = build_fab_from_disk(TEAM)
        other = bundle_of({**files_of(good), "numpy.py": b""})
        for content, is_accepted in [(good, True), (other, False)]:
            accepted = internal._pull_and_store_message(
                trusted_entities=None,
                get_run=Run.create_empty,
                get_fab=lambda *_, content=content: Fab("", content, {}),
            )
            self.assertEqual(accepted, is_accepted)

    def test_a_run_names_no_other_app_and_starts_no_agent(self):
        run = Run.create_empty(7)
        run.fab_id, run.fab_version = "x/y", "/../../.."
        run.primary_task_type = TaskType.AGENT_APP
        own = node._of_this_app(run)
        self.assertEqual((own.run_id, own.fab_id, own.fab_version), (7, "hone/hone-team", "0.1.0"))
        self.assertEqual(own.primary_task_type, TaskType.SERVER_APP)

    def test_another_flower_is_refused(self):
        for name in ("_pull_and_store_message", "_verify_fab"):
            internal = self.internal()
            delattr(internal, name)
            with self.assertRaisesRegex(RuntimeError, "1.42.0"):
                node.install(internal)

    def test_the_real_node_answers_with_an_error_and_stores_no_app(self):
        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
        names = ("_pull_and_store_message", "_verify_fab")
        for name in names:
            whole = getattr(start_client_internal, name)
            self.addCleanup(setattr, start_client_internal, name, whole)
        node.install(start_client_internal)
        content = RecordDict({"x": ConfigRecord({"y": 1})})
        message = Message(content, dst_node_id=1, message_type="query")
        fab = Fab("", bundle_of({"x.py": b""}, lists_files=False), {})
        state, inserted = unittest.mock.Mock(), unittest.mock.Mock()
        state.get_run.return_value = None
        with unittest.mock.patch.object(start_client_internal, "_insert_message", inserted):
            start_client_internal._pull_and_store_message(
                state=state, object_store=None, node_config={}, receive=lambda: (message, None),
                get_run=Run.create_empty, get_fab=lambda *_: fab,
                pull_object=None, confirm_message_received=None, trusted_entities=None,
            )
        reply = inserted.call_args.args[0]
        self.assertEqual(reply.error, start_client_internal.FAB_VERIFICATION_ERROR)
        state.store_fab.assert_not_called()
        state.create_task.assert_not_called()


class Options(unittest.TestCase):
    def options(self, *arguments: str, **team) -> list[str]:
        status = {"address": "hone.example.org:9092", "certificate": None, **team}
        return node.with_coordinator(list(arguments), flower_supernode, lambda: status)

    def test_hone_knows_the_coordinator(self):
        here = ["--superlink", "hone.example.org:9092"]
        self.assertEqual(self.options(), [*here, "--insecure"])
        pinned = [*here, "--root-certificates", "/x/ca.pem"]
        self.assertEqual(self.options(certificate="/x/ca.pem"), pinned)
        self.assertEqual(
            self.options("--port", "9", certificate="/x/ca.pem"), [*pinned, "--port", "9"]
        )
        given = ["--root-certificates", "/y.pem"]
        self.assertEqual(self.options(*given, certificate="/x/ca.pem"), [*here, *given])
        with self.assertRaisesRegex(node.NotStarted, "in no team"):
            self.options(address=None)

    def test_a_coordinator_that_is_named_is_taken(self):
        for given in (["--superlink", "a:1", "--insecure"], ["--superlink=a:1"], ["--superl=a:1"]):
            self.assertEqual(self.options(*given, address=None), given)

    def test_no_app_may_bring_more_code(self):
        for given in ("--allow-runtime-dependency-installation", "--allow-runtime"):
            with self.assertRaises(node.NotStarted):
                self.options("--superlink", "a:1", given)
        with self.assertRaises(node.NotStarted):
            self.options("--superlink", "a:1", "--trusted-entities", "x.yaml")

    def test_the_command_starts_flowers_node(self):
        started = []

        def start():
            started.append(sys.argv)

        with (
            unittest.mock.patch.object(flower_supernode, "flower_supernode", start),
            unittest.mock.patch.object(node, "install") as install,
            unittest.mock.patch("sys.argv", ["hone-team"]),
        ):
            self.assertEqual(admin.main(["node", "--superlink", "a:1", "--insecure"]), 0)
            install.assert_called_once_with(start_client_internal)
        self.assertEqual(started, [["flower-supernode", "--superlink", "a:1", "--insecure"]])


if __name__ == "__main__":
    unittest.main()
