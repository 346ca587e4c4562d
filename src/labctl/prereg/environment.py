"""Which variables a preregistration may set: none that labctl sets itself, none that loads code, none with a secret."""

import re

BASE_ENVIRONMENT = (
    "HOME",
    "LANG",
    "LC_ALL",
    "PATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONNOUSERSITE",
    "PYTHONPYCACHEPREFIX",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
"""What labctl itself sets for each start; nothing else is in a server's environment but what is registered."""

SELECTING_VARIABLES = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "SYCL_DEVICE_FILTER",
    "ZE_AFFINITY_MASK",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    "ZE_FLAT_DEVICE_HIERARCHY",
)
"""By which labctl shows a worker or a rank its own card, and nobody else does."""

RANK_VARIABLES = ("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
"""By which labctl tells the ranks of a probe who they are and where they meet."""

_INJECTING = frozenset(
    {
        "BASH_ENV",
        "ENV",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "IFS",
        "LD_AUDIT",
        "LD_DEBUG",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LD_PROFILE",
        "PROMETHEUS_MULTIPROC_DIR",
        "PYTHONBREAKPOINT",
        "PYTHONEXECUTABLE",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "PYTHONPATH",
        "PYTHONPLATLIBDIR",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "PYTHONWARNINGS",
    }
)
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@")
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"})
_SECRET_WORDS = frozenset({"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "APIKEY", "CREDENTIAL", "CREDENTIALS"})


def objection_to(name: str) -> str | None:
    """Why a variable cannot be registered or passed on, or None where it can."""
    if name in BASE_ENVIRONMENT:
        return "a variable that labctl sets for each start"
    if name in _INJECTING:
        return "a variable that brings in code, paths or state from elsewhere"
    if name.upper() in _PROXIES:
        return "a proxy, which would stand between client and server"
    if speaks_of_a_secret(name):
        return "a name that speaks of a secret, which packets and runs would publish"
    return None


def speaks_of_a_secret(name: str) -> bool:
    """Whether a variable's name has a word such as TOKEN, SECRET, PASSWORD or KEY."""
    return not _SECRET_WORDS.isdisjoint(name.upper().split("_"))


def holds_password(text: str) -> bool:
    """Whether a text holds an address with a password, `scheme://user:password@host`."""
    return _PASSWORD.search(text) is not None
