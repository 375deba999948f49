"""A member's SuperNode, which runs the app that is installed here and no other.

A coordinator sends its app to the members as a bundle (FAB), and Flower's SuperNode runs the code
in it. So everything that a member's code checks would be checked by the coordinator's code. This
node is Flower's SuperNode with one thing changed: it compares a bundle with the package that is
installed here, file by file. If anything differs, the coordinator gets an error, no code of the
bundle runs, and the node continues.
"""

import dataclasses
import hashlib
import importlib
import importlib.metadata
import io
import os
import sys
import tomllib
import zipfile
from collections.abc import Callable
from logging import ERROR
from pathlib import Path
from types import ModuleType
from typing import Any

from hone_team.hone import Hone

PACKAGE = Path(__file__).parent
# A bundle of this package has about 50 KB.
BUNDLE_BYTES_MAX = 1 << 20

_MANIFEST = ".info/CONTENT"
_PROJECT = "pyproject.toml"
_PUBLISHER, _NAME = "hone", "hone-team"
_COMPONENT = "hone_team.client_app:app"
# Flower verifies bundles only if somebody is trusted. Whom is decided here, by the files.
_TRUSTED = {"hone_team": ""}
_LICENSED = {"valid_license": "checked"}


class OtherApp(Exception):
    """A bundle is not the package that is installed here."""


class NotStarted(Exception):
    """A node is not started with these options, or on this machine."""


def main(arguments: list[str]) -> int:
    # Flower reads these when it is imported.
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
    supernode = importlib.import_module("flwr.supernode.cli.flower_supernode")
    try:
        whole = with_coordinator(arguments, supernode, Hone().status)
    except Exception as error:
        print(f"hone-team node: {error}", file=sys.stderr)
        return 1
    install(importlib.import_module("flwr.supernode.start_client_internal"))
    sys.argv = ["flower-supernode", *whole]
    supernode.flower_supernode()
    return 0


def with_coordinator(
    arguments: list[str], supernode: ModuleType, status: Callable[[], dict]
) -> list[str]:
    """The options for Flower's SuperNode. If they name no coordinator, Hone does."""
    parser = supernode._parse_args_run_supernode()
    parser.set_defaults(superlink=None)
    given = parser.parse_args(arguments)
    if given.runtime_dependency_install:
        raise NotStarted("this node lets no app install what it asks for, which could be anything")
    if given.trusted_entities:
        raise NotStarted("--trusted-entities: this node runs only the app that is installed here")
    if given.superlink is not None:
        return arguments
    team = status()
    if team["address"] is None:
        raise NotStarted("this machine is in no team; `hone team join` joins one")
    found = ["--superlink", team["address"]]
    if not given.insecure and given.root_certificates is None:
        certificate = team.get("certificate")
        found += ["--root-certificates", certificate] if certificate else ["--insecure"]
    return [*found, *arguments]


def install(internal: ModuleType) -> None:
    """Makes Flower's SuperNode in this process compare bundles."""
    names = ["_pull_and_store_message", "_verify_fab", "FAB_VERIFICATION_ERROR"]
    if not all(hasattr(internal, name) for name in names):
        raise RuntimeError("this version of Flower verifies apps elsewhere; install 1.42.0")
    original = internal._pull_and_store_message

    def pull(**given: Any) -> int | None:
        get_run, get_fab = given["get_run"], given["get_fab"]
        given["trusted_entities"] = _TRUSTED
        given["get_run"] = lambda run: _of_this_app(get_run(run))
        given["get_fab"] = lambda *asked: dataclasses.replace(
            get_fab(*asked), verifications=_LICENSED
        )
        return original(**given)

    internal._pull_and_store_message = pull
    internal._verify_fab = lambda fab, trusted: is_installed(fab.content)


def is_installed(bundle: bytes) -> bool:
    """Whether a bundle is the package that is installed here. The log says what differs."""
    from flwr.common.logger import log

    try:
        check_bundle(bundle, PACKAGE)
    except OtherApp as error:
        log(
            ERROR,
            "The coordinator's app is not the package that is installed here: %s. It does not run. "
            "To take part, look at the coordinator's version of the package, and install it here.",
            error,
        )
        return False
    return True


def check_bundle(bundle: bytes, package: Path) -> None:
    """Raises `OtherApp` unless a bundle has the files of an installed package and no others."""
    try:
        files = _unpacked(bundle)
        project = tomllib.loads(files.get(_PROJECT, b"").decode())
    except OtherApp:
        raise
    except Exception as error:
        raise OtherApp(f"the bundle cannot be read ({type(error).__name__})") from None
    installed = {f"hone_team/{path.name}": path.read_bytes() for path in package.glob("*.py")}
    wanted = {_MANIFEST, _PROJECT, *installed}
    if missing := sorted(wanted - set(files)):
        raise OtherApp(f"it lacks {', '.join(missing)}")
    if foreign := sorted(set(files) - wanted):
        raise OtherApp(f"it also has {', '.join(foreign)[:200]!r}")
    for name, content in installed.items():
        if files[name] != content:
            raise OtherApp(f"{name} has another content")
    if files[_MANIFEST].decode(errors="replace") != _manifest(files):
        raise OtherApp(f"{_MANIFEST} does not list the files")
    _check_project(project)


def _unpacked(bundle: bytes) -> dict[str, bytes]:
    """The files of a bundle, which cannot be larger than the limit in all."""
    if len(bundle) > BUNDLE_BYTES_MAX:
        raise OtherApp(f"the bundle has more than {BUNDLE_BYTES_MAX} bytes")
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > BUNDLE_BYTES_MAX:
            raise OtherApp(f"the bundle's files have more than {BUNDLE_BYTES_MAX} bytes")
        names = [entry.filename for entry in entries]
        if len(set(names)) != len(names):
            raise OtherApp("the bundle has two files of one name")
        return {entry.filename: archive.read(entry) for entry in entries}


def _manifest(files: dict[str, bytes]) -> str:
    """The list of files as Flower writes it. Flower opens whatever files a list names."""
    names = [_PROJECT, *sorted(set(files) - {_PROJECT, _MANIFEST})]
    return "\n".join(
        f"{name},{hashlib.sha256(files[name]).hexdigest()},{len(files[name]) * 8}"
        for name in names
    )


def _check_project(project: dict) -> None:
    """Checks what decides which code runs, and where Flower puts the files."""
    try:
        app = project["tool"]["flwr"]["app"]
        told = (app["publisher"], project["project"]["name"], project["project"]["version"])
        component = app["components"]["clientapp"]
    except (KeyError, TypeError):
        raise OtherApp(f"{_PROJECT} names no Flower app") from None
    if told != (_PUBLISHER, _NAME, _version()):
        raise OtherApp(f"{_PROJECT} is of another package or version")
    if component != _COMPONENT:
        raise OtherApp(f"{_PROJECT} names another client app than {_COMPONENT}")


def _of_this_app(run: Any) -> Any:
    """A run of the app that was compared. A coordinator could name other files of this machine,
    from which Flower would load an app, or have it started as an agent."""
    from flwr.supercore.constant import TaskType

    return dataclasses.replace(
        run,
        fab_id=f"{_PUBLISHER}/{_NAME}",
        fab_version=_version(),
        primary_task_type=TaskType.SERVER_APP,
    )


def _version() -> str:
    return importlib.metadata.version(_NAME)
