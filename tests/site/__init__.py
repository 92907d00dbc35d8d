"""The documentation as a site: what mkdocs adds to docs/, and the commands on its pages, played."""
