"""Fleet: the coordinators behind this gateway, and which of them answers a request."""

import asyncio
import dataclasses

from gateway.backend import Coordinator, Model
from gateway.errors import ApiError, none_ready, unavailable


@dataclasses.dataclass(frozen=True)
class Served:
    """What answers a request."""
    coordinator: Coordinator
    id: str       # of the model, or of an adapter of it, as the client may name it
    adapter: str  # empty: the model alone


def _resolve(known: list[Model], name: str) -> tuple[str, str]:
    """The id of the model of that name and "", or of the one with such an adapter and the adapter."""
    if any(one.id == name for one in known):
        return name, ""
    having = [one.id for one in known if name in one.adapters]
    if len(having) > 1:
        raise ApiError(400, f"several models have an adapter '{name[:100]}': "
                       + ", ".join(f"'{one}'" for one in having), param="model")
    if not having:
        raise unknown_model(name, [each for one in known for each in (one.id, *one.adapters)])
    return having[0], name


def unknown_model(name: str, served: list[str]) -> ApiError:
    return ApiError(404, f"the model '{name[:100]}' does not exist; served: "
                    + ", ".join(f"'{each}'" for each in served), param="model", code="model_not_found")


class Fleet:
    """Those with the same model id share its requests. Of the event loop's thread."""

    def __init__(self, coordinators: list[Coordinator]):
        self._coordinators = coordinators
        self._watches: list[asyncio.Task] = []

    async def until_serving(self) -> None:
        """Until each has served once."""
        for one in self._coordinators:
            await one.has_served.wait()

    def start(self) -> None:
        self._watches = [asyncio.create_task(one.watch()) for one in self._coordinators]

    async def close(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for coordinator in self._coordinators:
            await coordinator.close()

    @property
    def serving(self) -> bool:
        return any(one.serving for one in self._coordinators)

    def any_serving(self) -> Coordinator | None:
        """The one with the fewest requests of ours."""
        ready = [one for one in self._coordinators if one.serving]
        return min(ready, key=lambda one: one.in_flight) if ready else None

    def models(self) -> list[Model]:
        """Each once, with the adapters that any of its coordinators has."""
        found: dict[str, Model] = {}
        for model in (one.model for one in self._coordinators if one.model is not None):
            adapters = found[model.id].adapters if model.id in found else ()
            found[model.id] = dataclasses.replace(
                model, adapters=adapters + tuple(one for one in model.adapters if one not in adapters))
        return list(found.values())

    def pick(self, model_id: str | None) -> Served:
        """The serving one with the fewest requests of ours; None: of the only model, without an
        adapter. The name of a model comes before that of an adapter.

        Raises an ApiError: 404 for an unknown model, 400 for none of several or an adapter that
        several have, 503 if none serves.
        """
        known = self.models()
        if not known:
            raise none_ready()
        if model_id is None:
            if len(known) > 1:
                raise ApiError(400, "model is needed: several are served", param="model")
            model_id = known[0].id
        base, adapter = _resolve(known, model_id)
        having = [one for one in self._coordinators if one.model is not None
                  and one.model.id == base and (not adapter or adapter in one.model.adapters)]
        ready = [one for one in having if one.serving]
        if not ready:
            raise unavailable("no server of this model is ready")
        return Served(min(ready, key=lambda one: one.in_flight), model_id, adapter)
