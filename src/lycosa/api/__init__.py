"""What a Python program imports: `Crawl` and `Collection`, and how the parts of a crawl are put together."""
