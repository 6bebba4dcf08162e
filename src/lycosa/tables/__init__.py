"""Tables of links and of volatile information: their formats, the crawl's side, and the publisher's."""
