"""A file of a run by its place in the run, as whoever opens it has to know: no link on the way there is followed."""

from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from crosswind.files.inside import read_inside, reader_inside
from crosswind.store.addresses import shown


@dataclass(frozen=True)
class RunFile:
    """Attributes: run: the run's directory; links may lead there. name: the file's path within it."""

    run: Path
    name: str

    def __str__(self) -> str:
        return shown(self.run / self.name)

    def open(self) -> BufferedReader:
        """Opens it for reading. Raises: OSError, also where it is no regular file, or a link leads there."""
        return reader_inside(self.run, self.name)

    def read(self) -> bytes:
        """The content. Raises: OSError as `open` does."""
        return read_inside(self.run, self.name)
