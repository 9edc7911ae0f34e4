#!/usr/bin/env python3
"""The command line of cascade as people meet it: help, examples, errors, completions, man pages, doctor.

Usage: command_line.py --bin DIR --model FILE [--plugin FILE] [--foreign FILE] [--only PART]
Subcommands are asked of the program itself, so that a new one is checked without a word here. Without the model only
what needs it is left out.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

SCREEN_LINES, SCREEN_COLUMNS = 24, 80
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("GGML_", "LLAMA_", "CASCADE_", "OMP_"))}


class Program:
    def __init__(self, args: argparse.Namespace) -> None:
        self.path = str(args.bin.resolve() / "cascade")
        self.plugin = str((args.plugin or args.bin / "libggml-cascade.so").resolve())
        self.foreign = args.foreign and str(args.foreign.resolve())
        self.model = str(args.model.resolve()) if args.model.exists() else None

    def run(self, *args: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([self.path, *args], env=CLEAN | env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == code, f"{args}: exit code {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
        return done

    def commands(self) -> list[str]:
        return re.findall(r"^  (\w+)  ", self.run("--help").stdout, re.MULTILINE)


def help_fits_a_screen(p: Program, tmp: pathlib.Path) -> None:
    lines = p.run("--help").stdout.splitlines()
    assert len(lines) <= SCREEN_LINES, len(lines)
    assert max(map(len, lines)) <= SCREEN_COLUMNS, max(lines, key=len)
    commands = p.commands()
    assert {"analyze", "graph", "doctor", "completion", "man"} <= set(commands) and len(commands) == len(set(commands))
    assert "\033" not in p.run("--help").stdout, "no colour, with NO_COLOR or without"


def examples_parse(p: Program, tmp: pathlib.Path) -> None:
    """As they stand in the help, in a folder that has every file they name."""
    for command in p.commands():
        text = p.run(command, "--help").stdout.replace("\\\n", " ")
        examples = re.findall(rf"^  (cascade {command}\b.*)$", text, re.MULTILINE)
        assert len(examples) >= 2, f"{command}: two examples are wanted, not {examples}"
        for example in examples:
            words = shlex.split(re.split(r" [|>] ", example)[0])[1:]
            for word in words:
                if re.search(r"\.\w+$", word) and not word.startswith("-"):
                    (tmp / word).parent.mkdir(parents=True, exist_ok=True)
                    (tmp / word).touch()
            done = subprocess.run([p.path, "--check-flags", *words], cwd=tmp, env=CLEAN, capture_output=True, text=True)
            assert done.returncode == 0 and done.stdout + done.stderr == "", (example, done)


def errors_name_flag_and_remedy(p: Program, tmp: pathlib.Path) -> None:
    for args, expected in (([], "give a command: "), (["anlyze"], "did you mean 'analyze'?"),
                           (["analyze"], "give -m FILE"), (["graph", "--modle", "x"], "did you mean '--model'?"),
                           (["graph", "-m", "nowhere.gguf"], "no file 'nowhere.gguf'"),
                           (["completion", "tcsh"], "bash, zsh, fish"), (["man", "anlyze"], "did you mean 'analyze'?")):
        done = p.run(*args, code=2)
        assert expected in done.stderr and "--help'" in done.stderr and done.stdout == "", (args, done.stderr)
    (tmp / "not.gguf").write_text("this is no model")
    done = p.run("graph", "-m", str(tmp / "not.gguf"), code=1)
    assert "give a GGUF file with -m" in done.stderr, done.stderr


def complete_in_bash(script: pathlib.Path, *words: str, cwd: pathlib.Path) -> list[str]:
    code = f"""source {shlex.quote(str(script))}
        COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}
        $(complete -p cascade | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    # the function runs in this shell, not in the substitution that finds its name
    done = subprocess.run(["bash", "--norc", "-u", "-c", code], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0 and done.stderr == "", done
    return [line for line in done.stdout.splitlines() if line]


def bash_completes(p: Program, tmp: pathlib.Path) -> None:
    script = tmp / "completion.bash"
    script.write_text(p.run("completion", "bash").stdout)
    (tmp / "a model.gguf").touch()
    for words, expected in ((["ana"], ["analyze"]), (["analyze", "--win"], ["--windows"]),
                            (["analyze", "-o", ""], ["md", "csv", "json", "html"]),
                            (["analyze", "--output", "=", "h"], ["html"]), (["analyze", "-o", "j"], ["json"]),
                            (["analyze", "--source", "key,re"], ["key,residual"]), (["analyze", "-c", "5"], []),
                            (["graph", "-m", "a"], ["a model.gguf"]), (["graph", "--flash-attn", "o"], ["on", "off"]),
                            (["completion", ""], ["bash", "zsh", "fish"]), (["man", "ana"], ["analyze"]),
                            (["--v"], ["--version"]), (["nonsense", "x"], [])):
        found = complete_in_bash(script, "cascade", *words, cwd=tmp)
        assert found == expected, (words, found, expected)
    assert sorted(complete_in_bash(script, "cascade", "", cwd=tmp)) == sorted(p.commands())
    for command in p.commands():  # every flag that the help has, and no other
        flags = set(re.findall(r"(?<=[ ,])--?[a-z][a-z0-9-]*(?=[ ,\n])", flag_column(p.run(command, "--help").stdout)))
        assert set(complete_in_bash(script, "cascade", command, "-", cwd=tmp)) == flags, (command, flags)


def flag_column(text: str) -> str:
    return "\n".join(re.split(r"  +", line.strip())[0].join(("  ", " ")) for line in text.splitlines()
                     if re.match(r"  (    --|-)", line))


def other_shells_read_theirs(p: Program, tmp: pathlib.Path) -> None:
    for shell in ("zsh", "fish"):
        script = tmp / f"completion.{shell}"
        script.write_text(p.run("completion", shell).stdout)
        if shutil.which(shell) is None:
            print(f"    {shell} is not installed: its script is not tried")
            continue
        done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done
    if shutil.which("fish"):
        for line, expected in (("ana", "analyze"), ("analyze -o j", "json"), ("analyze --win", "--windows")):
            code = f"source {shlex.quote(str(tmp / 'completion.fish'))}; complete -C 'cascade {line}'"
            done = subprocess.run(["fish", "-c", code], capture_output=True, text=True,
                                  env=os.environ | {"HOME": str(tmp), "XDG_CONFIG_HOME": str(tmp)})
            assert expected in [found.split("\t")[0] for found in done.stdout.splitlines()], (line, done)


def man_pages_are_clean(p: Program, tmp: pathlib.Path) -> None:
    p.run("man", "--all", str(tmp))
    pages = sorted(tmp.glob("*.1"))
    assert {page.name for page in pages} == {"cascade.1"} | {f"cascade-{name}.1" for name in p.commands()}
    assert (tmp / "cascade.1").read_text() == p.run("man").stdout
    checks = [command for command in (["groff", "-man", "-ww", "-Tutf8"], ["man", "--warnings", "-l"],
                                      ["mandoc", "-T", "lint", "-W", "error"]) if shutil.which(command[0])]
    if not checks:
        print("    neither groff, man nor mandoc is installed: the pages are not formatted")
    for page in pages:
        assert "\n.SH EXAMPLES\n" in page.read_text() or page.name == "cascade.1", page
        for command in checks:
            done = subprocess.run([*command, str(page)], capture_output=True, text=True,
                                  env=CLEAN | {"LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
            assert done.returncode == 0 and done.stderr == "", (command, page.name, done.stderr)


def health(p: Program, *args: str, code: int = 0, **env: str) -> dict[str, dict]:
    report = json.loads(p.run("doctor", "-o", "json", *args, code=code, **env).stdout)
    assert report["problem"] == (code == 1) and report["verdict"], report
    return {check["check"]: check for check in report["checks"]} | {"verdict": report["verdict"]}


def doctor_finds_all_well(p: Program, tmp: pathlib.Path) -> None:
    found = health(p, GGML_BACKEND_PATH=p.plugin)
    for name in ("engine", "backends", "GGML_BACKEND_PATH", "plugin", "settings", "our kernels", "memory"):
        assert found[name]["health"] == "ok", found[name]
    assert "CPU" in [backend["name"] for backend in found["backends"]["detail"]]
    assert "mode exact" in found["verdict"], found["verdict"]
    text = p.run("doctor", GGML_BACKEND_PATH=p.plugin, NO_COLOR="1").stdout
    assert text.startswith("ok ") and "\nWhat cascade would do here: " in text and "\033" not in text, text


def doctor_finds_problems(p: Program, tmp: pathlib.Path) -> None:
    found = health(p, code=1, GGML_BACKEND_PATH=str(tmp / "nowhere.so"))
    assert found["GGML_BACKEND_PATH"]["health"] == "problem" and "nowhere.so" in found["GGML_BACKEND_PATH"]["finding"]
    found = health(p, code=1, GGML_BACKEND_PATH=p.plugin, GGML_CASCADE="fastest")
    assert "GGML_CASCADE=fastest" in found["setting"]["finding"] and "exact" in found["setting"]["remedy"], found
    garbage = tmp / "libggml-cascade.so"
    garbage.write_text("no library")
    found = health(p, code=1, GGML_BACKEND_PATH=str(garbage))
    assert found["plugin"]["health"] == "problem" and "doesn't load" in found["plugin"]["finding"], found["plugin"]
    if p.foreign:
        found = health(p, code=1, GGML_BACKEND_PATH=p.foreign)
        assert "built for ggml" in found["plugin"]["finding"] and "0000000" in found["plugin"]["finding"], found


def crashing_plugin(tmp: pathlib.Path) -> pathlib.Path | None:
    compiler = shutil.which("cc")
    source, library = tmp / "crash.c", tmp / "libggml-cascade-crash.so"
    source.write_text("void * ggml_backend_init(void) { __builtin_trap(); }\n")
    if compiler is None:
        return None
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def doctor_survives_a_crash(p: Program, tmp: pathlib.Path) -> None:
    library = crashing_plugin(tmp)
    if library is None:
        print("    no C compiler: not tried")
        return
    found = health(p, code=1, GGML_BACKEND_PATH=str(library))
    assert "crashed" in found["plugin"]["finding"] and found["plugin"]["remedy"], found["plugin"]
    assert found["backends"]["health"] == "ok", found["backends"]


def doctor_opens_a_model(p: Program, tmp: pathlib.Path) -> None:
    if p.model is None:
        print("    the model is missing: scripts/get-models fetches it")
        return
    for mode, taken in (("exact", 0), ("reference", 30)):
        found = health(p, "-m", p.model, GGML_BACKEND_PATH=p.plugin, GGML_CASCADE=mode)
        model = found["model"]["detail"]
        assert (model["architecture"], model["layers"], model["layers_recognised"]) == ("llama", 30, 30), model
        assert model["context"] == 8192 and model["cache_bytes"] == 8192 * 30 * 2 * 3 * 64 * 2, model
        assert (found["attention"]["detail"]["taken"], found["attention"]["detail"]["left"]) == (taken, 30 - taken)
    assert "30 of the model's 30 attentions" in found["verdict"], found["verdict"]


def doctor_survives_damaged_models(p: Program, tmp: pathlib.Path) -> None:
    damaged = {"empty": b"", "text": b"this is no model", "magic": b"GGUF", "counts": b"GGUF\x03\0\0\0" + b"\xff" * 64}
    if p.model is not None:
        whole = pathlib.Path(p.model).read_bytes()
        damaged["cut"] = whole[:len(whole) // 3]
        damaged["header"] = whole[:500] + bytes(255 - byte for byte in whole[500:900]) + whole[900:3_000_000]
    for name, data in damaged.items():
        file = tmp / f"{name}.gguf"
        file.write_bytes(data)
        found = health(p, "-m", str(file), code=1, GGML_BACKEND_PATH=p.plugin)
        assert found["model"]["health"] == "problem" and found["model"]["remedy"], found["model"]
        assert "no reason was given" not in found["model"]["finding"], found["model"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--plugin", type=pathlib.Path, help="default: the one beside the program")
    parser.add_argument("--foreign", type=pathlib.Path, help="a plugin built for another engine")
    parser.add_argument("--only", help="run the checks whose name contains this")
    args = parser.parse_args()
    p = Program(args)
    for check in (help_fits_a_screen, examples_parse, errors_name_flag_and_remedy, bash_completes,
                  other_shells_read_theirs, man_pages_are_clean, doctor_finds_all_well, doctor_finds_problems,
                  doctor_survives_a_crash, doctor_opens_a_model, doctor_survives_damaged_models):
        if args.only and args.only not in check.__name__:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as tmp:
            check(p, pathlib.Path(tmp))
        print(f"ok  {check.__name__}  {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
