"""Networks with a name: `path.network`. Numbers for both directions, and where each is from.

`network.py` says what a network is; every other file here has some of them.
"""

from collections.abc import Mapping

from crosswind.study.networks.access import ACCESS
from crosswind.study.networks.documents import DOCUMENTS
from crosswind.study.networks.network import Network
from crosswind.study.networks.webpagetest import DEVTOOLS, WEBPAGETEST

__all__ = ["NETWORKS", "Network"]

NETWORKS: Mapping[str, Network] = {network.name: network for network in (*ACCESS, *DOCUMENTS, *DEVTOOLS, *WEBPAGETEST)}
"""Every network by name, in the order in which they are listed."""
