"""The route over the versions of the fleet."""

from controller.api.route import Call, Route
from controller.core.faults.matrix import Matrix
from controller.deciding.conductor import Conductor


class VersionRoutes:
    """Read from what nodes last said; nothing is stored for it."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="GET",
                path="/api/v1/versions",
                name="versions",
                summary="Driver, CUDA, VBIOS, InfoROM and GSP firmware by pool and board, and what is known to be bad",
                run=self.versions,
                answer=Matrix,
            )
        ]

    async def versions(self, call: Call) -> Matrix:
        """All of them."""
        return self._conductor.mind.core.versions()
