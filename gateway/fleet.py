"""Fleet: the coordinators behind this gateway, and which of them answers a request."""

import asyncio

from gateway.backend import Coordinator, Model
from gateway.errors import ApiError, none_ready, unavailable


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
        """Each once."""
        return list({one.model.id: one.model for one in self._coordinators
                     if one.model is not None}.values())

    def pick(self, model_id: str | None) -> Coordinator:
        """The serving one with the fewest requests of ours; None: of the only model.

        Raises an ApiError: 404 for an unknown model, 400 for none of several, 503 if none serves.
        """
        known = self.models()
        if not known:
            raise none_ready()
        if model_id is None:
            if len(known) > 1:
                raise ApiError(400, "model is needed: several are served", param="model")
            model_id = known[0].id
        having = [one for one in self._coordinators
                  if one.model is not None and one.model.id == model_id]
        if not having:
            raise ApiError(404, f"the model '{model_id[:100]}' does not exist; served: "
                           + ", ".join(f"'{one.id}'" for one in known), param="model", code="model_not_found")
        ready = [one for one in having if one.serving]
        if not ready:
            raise unavailable("no server of this model is ready")
        return min(ready, key=lambda one: one.in_flight)
