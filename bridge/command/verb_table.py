"""The verbs: what each does, where its function is, and an example of it."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """A command whose module is imported when it runs.

    Args:
        function: the function, or the `typer.Typer` of several, as ``module:name``.
        summary: the first paragraph of its help.
        example: what follows the verb on a command line, and what that does.
    """

    function: str
    summary: str
    example: tuple[str, str]


# By what they are for.
GROUPS: dict[str, dict[str, Verb]] = {
    "Run": {
        "run": Verb(
            "run:run",
            "Run a model once on files and say what it finds: classes, boxes, points, masks. "
            "Pictures and sounds are prepared as the model's metadata say, or as the model shows.",
            (
                "model.tflite picture.jpg --output found.png",
                "says what is in a picture, and draws it",
            ),
        ),
        "generate": Verb(
            "generate:generate",
            "Let a bundle with a language model answer a prompt, or a conversation.",
            ('gemma.litertlm --prompt "Name three rivers."', "answers a prompt"),
        ),
        "embed": Verb(
            "embed:embed",
            "Make vectors of texts with a text encoder: each is 1 long, so products of two are "
            "cosines.",
            ('encoder.tflite --tokenizer tokenizer.json "a text"', "makes a vector of a text"),
        ),
        "as": Verb(
            "stand_in:app",
            "Run a program that imports tflite_runtime, ai_edge_litert, tensorflow.lite or "
            "mediapipe, with this library in its place.",
            ("tflite_runtime -m wyoming_openwakeword", "runs a program, with no line changed"),
        ),
        "demo": Verb(
            "verbs:demo",
            "Read handwritten digits; draw hands and faces on a film.",
            ("", "reads digits with the shipped models"),
        ),
    },
    "Convert": {
        "export": Verb(
            "export:export",
            "Write a model as ONNX; of a bundle every model, with a list of them, into a folder.",
            ("model.tflite model.onnx --check", "writes ONNX and compares it"),
        ),
        "extract": Verb(
            "extract:extract",
            "Write the part of a model that leads from some tensors to others, as a model.",
            ("model.tflite part.tflite --from input --to Relu_3", "cuts a part out"),
        ),
    },
    "Debug": {
        "inspect": Verb(
            "inspect:inspect",
            "Show signatures, inputs, outputs, costs and operators, where each would run and why "
            "not; of a bundle, what is in it, or with --model one of its models. Exit code 3 if a "
            "model cannot run.",
            ("model.tflite", "says what it takes, gives and costs, and where it runs"),
        ),
        "verify": Verb(
            "verify:verify",
            "Run a model in several runtimes and say which operator is off; exit code 4 if one is.",
            ("model.tflite --report report.html", "finds the first operator that is off"),
        ),
        "view": Verb(
            "view:view",
            "Show a model as a graph in Model Explorer, until Ctrl-C.",
            ("model.tflite", "shows the graph in a browser"),
        ),
        "versions": Verb(
            "verbs:versions",
            "Say which operator versions and runtime a model needs; exit code 3 if one is not "
            "known. Of an operator, which versions there are, and where it runs on which element "
            "types.",
            ("model.tflite", "says which release of TFLite it needs"),
        ),
    },
    "Speed": {
        "bench": Verb(
            "bench:bench",
            "Time models, beside LiteRT where ai-edge-litert is installed.",
            ("model.tflite --profile", "times it, and each operator"),
        ),
        "tune": Verb(
            "tune:tune",
            "Time the lowerings of each layer on this machine, once, and keep the fastest.",
            ("model.tflite", "finds the fastest way to compute each layer"),
        ),
        "compile": Verb(
            "compile:compile_models",
            "Make models ready and keep them in the cache, for interpreters with the same choices.",
            ("model.tflite", "stores it ready to run"),
        ),
        "cache": Verb(
            "cache:app",
            "Show or empty the cache of compiled models.",
            ("list", "shows what is stored"),
        ),
        "providers": Verb(
            "verbs:providers",
            "Show the execution providers that are installed, their devices, and what they lack.",
            ("", "lists the devices that can be used"),
        ),
    },
    "Scale": {
        "predict": Verb(
            "predict:predict",
            "Run a model over many inputs. The same command goes on with a job that was "
            "interrupted.",
            ("model.tflite pictures/ --out results.csv", "runs a folder of pictures"),
        ),
        "triton": Verb(
            "triton:triton",
            "Write a model for Triton: the exported file, its configuration, and labels.",
            ("model.tflite repository/", "writes it for Triton"),
        ),
    },
}
VERBS = {name: verb for group in GROUPS.values() for name, verb in group.items()}
# What other tools call them.
SYNONYMS = {
    **dict.fromkeys(("classify", "detect", "segment", "infer", "invoke", "test"), "run"),
    **dict.fromkeys(("convert", "onnx", "to_onnx", "tf2onnx"), "export"),
    **dict.fromkeys(("benchmark", "profile", "time"), "bench"),
    **dict.fromkeys(("visualize", "visualise", "netron", "show"), "view"),
    **dict.fromkeys(("compare", "validate", "val", "check", "debug"), "verify"),
    **dict.fromkeys(("info", "summary", "analyze", "describe", "list"), "inspect"),
    **dict.fromkeys(("chat", "lm"), "generate --chat"),
    **dict.fromkeys(("serve", "server"), "triton"),
    "help": "VERB --help",
    **dict.fromkeys(("batch", "track"), "predict"),
    **dict.fromkeys(("devices", "delegates"), "providers"),
}
# Names of the option that says where results go: every verb that writes takes all of them.
OUTPUTS = ("--out", "--output", "-o")
# What other tools call options. No verb takes these names: the answer is ours.
OPTION_SYNONYMS = {
    **dict.fromkeys(("--conf", "--threshold", "--score-threshold", "--score"), "--min-score"),
    **dict.fromkeys(("--device", "--delegate", "--accelerator", "--ep", "--gpu"), "--provider"),
    **dict.fromkeys(("--image", "--source", "--audio", "--file", "--input-file"), "--input"),
    **dict.fromkeys(("--names", "--classes", "--label", "--labelmap"), "--labels"),
    **dict.fromkeys(("--num-threads", "--num_threads", "--workers"), "--threads"),
    **dict.fromkeys(("--topk", "--top-k", "--top_k", "--num-results"), "--top"),
    **dict.fromkeys(("--save", "--save-to"), "--output"),
    **dict.fromkeys(("--half", "--fp16"), "--float16"),
    **dict.fromkeys(("--imgsz", "--input-shape", "--inputs"), "--shape"),
    "--save-dir": "--draw",
    "--simplify": "--for",
    "--iterations": "--rounds",
    "--num-runs": "--rounds",
}


def example_lines(name: str) -> list[str]:
    """An example of a verb, and what it does."""
    arguments, does = VERBS[name].example
    return [f"tflite-ort {name} {arguments}".rstrip(), f"    {does}"]
