"""How long, and until when: times as people are told them. Pure."""

import time


def duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3m 12s`, `2h 05m`, `3d 04h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days:,}d {h:02}h"
    if hours:
        return f"{hours}h {m:02}m"
    return f"{minutes}m {s:02}s" if minutes else f"{s} s"


def clock(unix_s: float, *, now_unix: float) -> str:
    """The time of day where the user is, `14:05:00`; on another day than today with its date."""
    then, today = time.localtime(unix_s), time.localtime(now_unix)
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)
