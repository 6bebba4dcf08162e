"""What a site says: its URLs, its rules for robots, its sitemaps. No I/O and no clock: `now` is an argument."""
