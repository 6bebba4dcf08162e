"""Has a page changed, where and how; how often does it; when to look again. No I/O, no clock: `now` is an argument."""
