"""Change detection and visit schedules, pure: no I/O and no clock, the time is an argument."""
