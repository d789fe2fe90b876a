"""ipmitool: chassis power over the network (IPMI 2.0, lanplus). An argument list, no shell, the password by file."""

import asyncio

from controller.power.config import PowerConfig
from controller.power.secret import password
from vocab.errors import Refused, Unreachable

ANSWER_S = 20.0  # its own retries take 7 s
ON, CYCLE = "on", "cycle"
IS_ON, IS_OFF = "chassis power is on", "chassis power is off"
SAYS_NO = ("not supported", "insufficient privilege", "invalid data field", "command failed", "denied")


class Ipmi:
    """One node's BMC, by its host name."""

    def __init__(self, config: PowerConfig, host: str) -> None:
        self._config = config
        self._host = host

    async def plan(self) -> str:
        """``cycle``, or ``on`` where the power is off. Raises Unreachable or Refused."""
        return CYCLE if await self._is_on() else ON

    async def cycle(self, means: str) -> None:
        """Send it, once."""
        await self._run("chassis", "power", means)

    async def complete(self) -> None:
        """Switch it on, should it be off."""
        if not await self._is_on():
            await self._run("chassis", "power", ON)

    async def _is_on(self) -> bool:
        said = (await self._run("chassis", "power", "status")).lower()
        if IS_ON in said:
            return True
        if IS_OFF in said:
            return False
        raise Refused(f"{self._host}: ipmitool says nothing of its power: {said[:200]!r}")

    async def _run(self, *words: str) -> str:
        password(self._config.password_path)  # it refuses a file that others may read
        program = [self._config.program, "-I", "lanplus", "-H", self._host, "-U", self._config.user]
        try:
            process = await asyncio.create_subprocess_exec(
                *program,
                *("-f", self._config.password_file),
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise Refused(f"{self._config.program} cannot be run: {error.strerror}; install ipmitool") from error
        try:
            async with asyncio.timeout(ANSWER_S):
                out, err = await process.communicate()
        except TimeoutError as error:
            raise Unreachable(f"{self._host}: ipmitool has not ended within {ANSWER_S:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            told = " ".join((err or out).decode(errors="replace").split())[-300:]
            no = any(word in told.lower() for word in SAYS_NO)
            raise (Refused if no else Unreachable)(f"{self._host}: ipmitool ended with {process.returncode}: {told}")
        return out.decode(errors="replace")
