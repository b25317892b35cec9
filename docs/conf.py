"""The documentation as a site: `make docs` (docs/decisions/0026-site.md)."""

project = "Crosswind"
author = "the Crosswind developers"
extensions = ["myst_parser"]
exclude_patterns = ["examples/**", "notebook.ipynb", "llms.txt"]
myst_heading_anchors = 4
"""Links to headings are those of a viewer of Markdown, by their words."""
nitpicky = True

html_theme = "furo"
html_title = "Crosswind"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["llms.txt"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
