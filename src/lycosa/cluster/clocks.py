"""Do the machines of a cluster agree on the time? Waits and dates travel with hosts that move, by the wall clock.

An agent tells its time with every beat; one that is far from the coordinator's is named once a start. Nothing stops:
within a process the monotonic clock counts, and a wait from another machine may be too long, never too short. Pure.
"""

FAR_S = 30.0  # a beat may be under way for ten


class Clocks:
    """Whose clock was complained of, by name and incarnation."""

    def __init__(self) -> None:
        self._told: set[tuple[str, int]] = set()

    def __repr__(self) -> str:
        return f"<Clocks {len(self._told)} told>"

    def warning(self, name: str, incarnation: int, machine: str, *, theirs: float, ours: float) -> str:
        """A sentence for the user, or nothing."""
        ahead_s = theirs - ours
        if not theirs or abs(ahead_s) < FAR_S or (name, incarnation) in self._told:
            return ""
        self._told.add((name, incarnation))
        where = "ahead of" if ahead_s > 0 else "behind"
        return (
            f"{name}: the clock of {machine or 'its machine'} is {abs(ahead_s):,.0f} s {where} the coordinator's: "
            "set it, or hosts that move wait too long"
        )
