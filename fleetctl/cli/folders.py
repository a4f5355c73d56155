"""Where a user's configuration and state lie; XDG variables move them."""

from __future__ import annotations

from pathlib import Path

from fleetctl.cli.files import make_folder
from fleetctl.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The user's two folders of fleetctl. Nothing in them is shared between users."""

    config: Path
    state: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    def engine(self, engine: str) -> Path:
        """Where an engine's state and keys lie, unless the configuration says otherwise."""
        return self.state / engine

    def witness(self, witness: str) -> Path:
        """Where a witness's state and keys lie."""
        return self.state / "witness" / witness

    def make(self, folder: Path) -> Path:
        """The folder, made 0700 if it is missing. Raises Unreachable."""
        make_folder(folder)
        return folder


def user_folders() -> Folders:
    """The folders of whoever runs this."""
    import platformdirs

    return Folders(
        config=Path(platformdirs.user_config_dir("fleetctl", appauthor=False)),
        state=Path(platformdirs.user_state_dir("fleetctl", appauthor=False)),
    )
