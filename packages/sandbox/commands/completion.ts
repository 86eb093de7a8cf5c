/** `completion`: prints a script that completes commands and options in bash or zsh. */

import { type Command, COMMON, EXIT, UsageError } from "../command.ts";

const SHELLS = ["bash", "zsh"] as const;

/**
 * Makes the command.
 * @param program the name of the program
 * @param commands returns all commands, this one included
 */
export function completionCommand(program: string, commands: () => readonly Command[]): Command {
  return {
    name: "completion",
    args: "SHELL",
    summary: `Print a script that completes commands and options in ${SHELLS.join(" or ")}`,
    options: {},
    examples: [
      "completion bash > ~/.local/share/bash-completion/completions/" + program,
      `completion zsh > "\${fpath[1]}/_${program}"`,
    ],
    run(_values, [shell, ...more], { print }) {
      if (more.length > 0 || !SHELLS.some((known) => known === shell)) {
        throw new UsageError(`Give one shell: ${SHELLS.join(" or ")}`);
      }
      const script = bashScript(program, commands());
      print(shell === "bash" ? script : zshScript(program, script));
      return Promise.resolve(EXIT.success);
    },
  };
}

/** A case for each beginning of a command line: the words that can follow it. */
function bashScript(program: string, commands: readonly Command[]): string {
  const next = new Map<string, Set<string>>();
  const add = (before: string, word: string) => {
    next.set(before, (next.get(before) ?? new Set()).add(word));
  };
  for (const { name, options } of commands) {
    const words = name.split(" ");
    words.forEach((word, index) => add(words.slice(0, index).join(" "), word));
    for (const option of Object.keys({ ...options, ...COMMON })) add(name, `--${option}`);
  }
  const cases = [...next].map(([before, words]) =>
    `    "${before}") words="${[...words].sort().join(" ")}" ;;`
  );
  const name = `_${program.replaceAll("-", "_")}`;
  return `${name}() {
  local word before="" words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) before="$before\${before:+ }$word" ;; esac
  done
  case "$before" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F ${name} ${program}
`;
}

/** zsh runs completions of bash. */
function zshScript(program: string, script: string): string {
  return `#compdef ${program}\nautoload -U +X bashcompinit && bashcompinit\n${script}`;
}
