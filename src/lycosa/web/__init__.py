"""What a site says: its addresses, its rules, its pages. Pure: no I/O and no clock; `now` is an argument."""
