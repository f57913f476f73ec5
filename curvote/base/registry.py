"""Registries: names of things of one kind, curvote's own and those of plug-ins.

A plug-in is an installed package that names its things as entry points, such as ::

    [project.entry-points."curvote.mechanisms"]
    rounded = "acme_noise.rounding:Rounded"

A pipeline may also name the place itself, ``acme_noise.rounding:Rounded``. No plug-in
takes a name that is curvote's own, and a task that somebody else wrote cannot name a
place: it would choose the code that its clients run.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from curvote.base.errors import UserError

_PLACE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class Registry(Mapping[str, str]):
    """Places ``module:object`` by name, of which those of plug-ins come last.

    ``kind`` is what a thing is called in errors, and ``places`` are curvote's own.
    ``group`` names the entry points of plug-ins, "" where there can be none. ``calls``
    lists what a thing may call by name in turn, which its code does not show.
    """

    def __init__(
        self,
        kind: str,
        places: Mapping[str, str],
        group: str = "",
        calls: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.kind, self.group = kind, group
        self._places = dict(places)
        self._calls = dict(calls or {})

    def __getitem__(self, name: str) -> str:
        if name in self._places:
            return self._places[name]
        if self.group and isinstance(name, str):
            if name in _plugins(self.group):
                return _plugins(self.group)[name].value
            if is_place(name) and name.partition(":")[0] not in self._places:
                return name
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._places
        if self.group:
            yield from (
                name for name in _plugins(self.group) if name not in self._places
            )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def load(self, name: str) -> Any:
        """Return what stands at a name's place: an object, or a whole module.

        UserError: the name is not known, or its plug-in cannot be imported.
        """
        from curvote.base import validate  # numpy, which no help needs

        place = self[validate.one_of(self, **{self.kind: name})]
        module, _, value = place.partition(":")
        if name in self._places:
            loaded = import_module(module)
            return getattr(loaded, value) if value else loaded
        try:
            # As ``from module import value``, which may be a module itself.
            loaded = __import__(module, fromlist=[value or "__name__"])
            return getattr(loaded, value) if value else loaded
        except (ImportError, AttributeError) as error:
            words = validate.format_value(str(error)) if str(error) else "it fails"
            raise UserError(
                f"{self.kind} {name} is a plug-in that cannot be imported: {words}."
            ) from None

    def reach(self, name: str) -> list[str]:
        """Return a name and all that it may call by name in turn.

        Of a family's member, such as ``sklearn:linear_model.Ridge``, the family.
        """
        family = name.partition(":")[0]
        entry = family if family in self._places else name
        return [entry, *self._calls.get(entry, ())]

    def origin(self, name: str) -> str:
        """Return whose a name is: "" for curvote, else a package or a place."""
        if name in self._places or not self.group:
            return ""
        plugin = _plugins(self.group).get(name)
        if plugin is None:
            return self.get(name, "")
        return f"{plugin.dist.name} {plugin.dist.version}" if plugin.dist else name


def is_place(name: object) -> bool:
    """Return whether a name is a place itself, as ``package.module:Class``."""
    return isinstance(name, str) and _PLACE.fullmatch(name) is not None


@cache
def _plugins(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
