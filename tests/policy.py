"""The architecture as rules over syntax trees: `violations` lists what a file breaks."""

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePosixPath

# Folder -> import name.
PACKAGES = {
    "bridge": "tflite_ort",
    "schema": "tflite_ort.schema",
    "versioning": "tflite_ort.versioning",
    "opmap": "tflite_ort.opmap",
    "fallback_kernels": "tflite_ort.fallback_kernels",
}

# Folder -> what it may import besides the standard library and itself.
MAY_IMPORT = {
    "schema": {"flatbuffers", "ml_dtypes", "numpy"},
    "versioning": {"tflite_ort.schema"},
    "opmap": {"ml_dtypes", "numpy", "tflite_ort.schema", "tflite_ort.versioning"},
    "fallback_kernels": {"ml_dtypes", "numpy", "tflite_ort.schema", "tflite_ort.versioning"},
    "bridge": {"google", "ml_dtypes", "numpy", "onnx", "onnxruntime", "rich", "typer"}
    | {"PyInstaller", *PACKAGES.values()},
}

# Folder -> its layers, lowest first: a file imports from its own layer and from those before it. A
# layer is the name of a subfolder or of a file at the root; `*` is all other files at the root.
LAYERS = {
    "schema": ({"file"}, {"values"}, {"arithmetic", "flex", "loops"}, {"shapes"}, {"*"}),
    "opmap": (
        {"onnx_graph"},
        {"graph", "registry"},
        {"idioms"},
        {"cells"},
        {"loops"},
        {"*"},
        {"flex"},
        {"rules"},
        {"__init__"},
    ),
    "fallback_kernels": ({"idioms", "registry"}, {"cells"}, {"*"}, {"flex"}),
    "bridge": (
        {"base", "state", "version"},
        {"providers"},
        {"tuning"},
        {"custom"},
        {"specialize"},
        {"batching"},
        {"plan"},
        {"comparison"},
        {"bundles"},
        {"decode"},
        {"model", "metadata"},
        {"cache"},
        {"interpreter"},
        {"export"},
        {"compiled_model", "*"},
        {"generation", "prediction", "tasks", "verification"},
        {"litert"},
        {"__init__", "command", "frozen", "quick"},
        {"__main__"},
    ),
}

# Library -> the only files, or folders, that name it.
ONLY_IN = {
    "onnxruntime": {
        "bridge/providers/candidates.py",
        "bridge/providers/native_libraries.py",
        "bridge/providers/onnx_file.py",
        "bridge/providers/plain_session.py",
        "bridge/providers/session.py",
        "bridge/providers/settings.py",
        "bridge/providers/threads.py",
    },
    "PyInstaller": {"bridge/frozen/"},
    "rich": {"bridge/command/"},
    "typer": {"bridge/command/"},
}

# The only files that import by a computed name: one for all, and those that are run in a process of
# their own, which import nothing of this library.
DYNAMIC_IMPORT = (
    "bridge/base/optional.py",
    "bridge/base/text_process.py",
    "bridge/verification/litert_worker.py",
)

# Every package may import these modules: the one above, that of records, the one that writes files,
# the one that reads those of the library, and the one that starts a library in its own process.
# They import no others of ours but `collecting`, `guard` and `own_process`.
EVERYWHERE = {
    "tflite_ort.base.files",
    "tflite_ort.base.library_process",
    "tflite_ort.base.optional",
    "tflite_ort.base.records",
    "tflite_ort.base.shipped",
}

# The only file that catches all that code of a user may raise, and reports it.
CALLS_USER_CODE = "versioning/registration.py"

# What runs or loads data as code: bytes of a model are never given to it.
EXECUTES = {"compile", "eval", "exec"}
# The only file that runs what it writes itself, as `dataclasses` does: a constructor, of the names
# of the fields that a class declares.
WRITES_CONSTRUCTORS = "bridge/base/records.py"
UNPICKLES = {("allow_pickle", "True")}
EXECUTING_MODULES = {"code", "dill", "marshal", "pickle", "runpy", "shelve"}

# The most lines that a file and a function have, in tests, benchmarks and examples too.
FILE_LINES, FUNCTION_LINES = 450, 60
# Files that are longer and still have to be divided.
TOO_LONG = {
    "schema/__init__.py",
}

# What ONNX Runtime's execution providers are called, and the only files that name one: the table of
# what is known of each, and LiteRT's names of options.
PROVIDER = re.compile(
    r"\w*ExecutionProvider\b|openvino|webgpu|cuda|tensorrt|qnn|directml|\bdml\b|coreml|migraphx"
    r"|rocm|nnapi|vitisai|xnnpack(?=_?ep|_?provider)",
    re.IGNORECASE,
)
NAMES_PROVIDERS = (
    *(
        "bridge/providers/traits.py",
        "bridge/prediction/accelerators.py",
        "bridge/compiled_model/options.py",
        "bridge/compiled_model/vendor_options.py",
        "bridge/export/presets.py",
    ),
)

# Where the methods of a graph for single nodes are.
SPELLS_NODES = {"opmap/graph/nodes.py"}

# What chooses the faster one of two graphs, and where that is: a translator says what an operator
# means. What it has to know of the CPU's kernels is a property of the target.
FASTER_FORMS = {"cpu_kernels", "build_chosen", "Lowering"}
CHOOSES_FORMS = (
    "opmap/rules/",
    "opmap/graph/forms.py",
    "opmap/graph/choices.py",
    "opmap/graph/costs.py",
)

VAGUE_WORDS = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}

Finding = tuple[int, str]
Rule = Callable[[PurePosixPath, ast.Module], Iterator[Finding]]


def violations(path: str, source: str) -> list[str]:
    """`file:line what` for everything in one file that breaks a rule."""
    where, tree = PurePosixPath(path), ast.parse(source)
    rules = RULES if where.parts[0] in PACKAGES else RULES_EVERYWHERE
    return [f"{path}:{line} {what}" for rule in rules for line, what in rule(where, tree)]


def import_direction(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    folder = path.parts[0]
    for line, module in imports(tree):
        owner = package(module)
        if module in EVERYWHERE:
            continue
        if owner not in MAY_IMPORT[folder] | {PACKAGES[folder]} | sys.stdlib_module_names:
            yield line, f"{folder} may not import {module}"


def layer_direction(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    folder = path.parts[0]
    if folder not in LAYERS:
        return
    here = layer(folder, path.with_suffix("").parts[1])
    for line, module in imports(tree):
        if package(module) == PACKAGES[folder] and module != PACKAGES[folder]:
            name = module.removeprefix(f"{PACKAGES[folder]}.").partition(".")[0]
            if layer(folder, name) > here:
                yield line, f"{path.parts[1]} is below {module}"


def layer(folder: str, name: str) -> int:
    """The place of a subfolder, or of a file at the root, among the layers of its package."""
    places = {each: place for place, names in enumerate(LAYERS[folder]) for each in names}
    return places.get(name, places["*"])


def confined_library(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for line, module in imports(tree):
        places = ONLY_IN.get(package(module), {str(path)})
        if not str(path).startswith(tuple(places)):
            yield line, f"{module} is only for {', '.join(sorted(places))}"


def import_in_function(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(scope):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node.lineno, f"import inside {scope.name}"


def dynamic_import(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            hidden = name.rpartition(".")[2] in {"__import__", "import_module"}
            if hidden and str(path) not in DYNAMIC_IMPORT:
                yield node.lineno, f"{name} is only for {DYNAMIC_IMPORT[0]}"


def relative_import(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "relative import"


def broad_except(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {ast.unparse(kind) if kind else "everything" for kind in caught}
            allowed = {"Exception"} if str(path) == CALLS_USER_CODE else set()
            for name in sorted(names & {"everything", "Exception", "BaseException"} - allowed):
                yield node.lineno, f"catches {name}"


def executed_data(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    refused = EXECUTES - ({"exec"} if str(path) == WRITES_CONSTRUCTORS else set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in refused:
            yield node.lineno, f"{node.id} runs data as code"
        if isinstance(node, ast.keyword) and (node.arg, ast.unparse(node.value)) in UNPICKLES:
            yield node.value.lineno, "allow_pickle runs data as code"
    for line, module in imports(tree):
        if package(module) in EXECUTING_MODULES:
            yield line, f"{module} runs data as code"


def vague_name(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for word in sorted(VAGUE_WORDS.intersection(path.stem.split("_"))):
        yield 1, f"'{word}' in a file name says nothing"


def module_docstring(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    if not ast.get_docstring(tree):
        yield 1, "module without a docstring"


def file_length(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    lines = max((node.end_lineno or 0 for node in tree.body), default=0)
    if lines > FILE_LINES and str(path) not in TOO_LONG:
        yield lines, f"{lines} lines, at most {FILE_LINES}"


def function_length(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {lines} lines, at most {FUNCTION_LINES}"


def provider_name(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    """A provider in an identifier or a string, or a comparison with one. Docstrings in bridge
    are documentation and may have names."""
    if str(path) in NAMES_PROVIDERS:
        return
    documentation = set(docstrings(tree)) if path.parts[0] == "bridge" else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and "CPU" in names_in(node):
            yield node.lineno, "compares with a provider, which has traits"
        for name in () if node in documentation else texts(node):
            for found in PROVIDER.findall(name):
                yield getattr(node, "lineno", 1), f"{found} is only for {NAMES_PROVIDERS[0]}"


def kept_array(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    """An array that all callers get again must not be written by one of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            made = ast.unparse(node.returns).partition("[")[0]
            keeps = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
            if made.endswith("Array") and keeps & {"cache", "lru_cache"}:
                yield node.lineno, f"{node.name} keeps an array: kept_table"


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            yield from ast.walk(node.body[0])


def texts(node: ast.AST) -> Iterator[str]:
    """The identifiers and the string that a node itself holds."""
    for field in ("id", "attr", "arg", "name", "value", "module", "asname"):
        text = getattr(node, field, None)
        if isinstance(text, str):
            yield text


def one_way(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    """Nodes and constants that a graph has a method for are not spelt out beside it."""
    if path.parts[0] != "opmap" or str(path) in SPELLS_NODES:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            arguments = [ast.unparse(argument) for argument in node.args]
            if node.func.attr == "op" and arguments[:1] == ["'Cast'"]:
                yield node.lineno, "Cast spelt out: g.cast"
            if node.func.attr == "constant" and arguments[1:] == ["np.int64"]:
                yield node.lineno, "int64 constant spelt out: g.ints"


def faster_form(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    """Of two graphs that say the same, rules choose the faster one."""
    if path.parts[0] != "opmap" or str(path).startswith(CHOOSES_FORMS):
        return
    for node in ast.walk(tree):
        for name in FASTER_FORMS.intersection(texts(node)):
            yield getattr(node, "lineno", 1), f"{name} is only for rules"


# For tests, benchmarks and examples.
RULES_EVERYWHERE: tuple[Rule, ...] = (
    file_length,
    function_length,
    relative_import,
    vague_name,
    module_docstring,
)
# For the packages.
RULES: tuple[Rule, ...] = (
    *RULES_EVERYWHERE,
    import_in_function,
    import_direction,
    layer_direction,
    confined_library,
    dynamic_import,
    broad_except,
    executed_data,
    provider_name,
    one_way,
    faster_form,
    kept_array,
)


def imports(tree: ast.Module) -> Iterator[Finding]:
    """(line, module) of every absolute import, a subpackage imported by name included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield node.lineno, full if full in PACKAGES.values() else node.module


def circles(sources: Mapping[str, str]) -> list[set[str]]:
    """The sets of modules that import each other in a circle.

    Args:
        sources: by module, its text.
    """
    above = {module: _imported(text, sources.keys()) - {module} for module, text in sources.items()}
    leaves = {module for module, names in above.items() if not names}
    while leaves:  # what imports nothing that is left is part of no circle
        above = {module: names - leaves for module, names in above.items() if module not in leaves}
        leaves = {module for module, names in above.items() if not names}
    found = []
    for module in above:
        reached = _reached(module, above)
        circle = {other for other in reached if module in _reached(other, above)}
        if circle and circle not in found:
            found.append(circle)
    return found


def _imported(text: str, modules: Collection[str]) -> set[str]:
    """The modules that a text imports, each in whole or a name of it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(inner & set(modules) or {node.module})
    return found & set(modules)


def _reached(module: str, above: Mapping[str, set[str]]) -> set[str]:
    """The modules that `module` imports, directly or through others."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = above[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def package(module: str) -> str:
    """The name the tables use for a module: ours by subpackage, others by their first part."""
    names = (name for name in PACKAGES.values() if f"{module}.".startswith(f"{name}."))
    return max(names, key=len, default=module.partition(".")[0])
