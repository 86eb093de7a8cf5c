/** `start`: runs the service in this folder until Ctrl-C. */

import { runProgram } from "../child_program.ts";
import {
  type Command,
  refuseArguments,
  textOf,
  UsageError,
  type Values,
  wholeNumberOf,
} from "../command.ts";
import { dataDir, makeDataDir } from "../data_folder.ts";
import { serviceCommand } from "../programs.ts";

/** The variables of the service that are options here. */
const OPTION_OF = { PORT: "port", DATA_DIR: "data-dir", DATABASE_URL: "database-url" };

export const START: Command = {
  name: "start",
  summary: "Run the service on this machine, with its data in this folder",
  options: {
    port: { value: "PORT", help: "port of 127.0.0.1 (54321); 0 for any free one" },
    "data-dir": { value: "FOLDER", help: "folder for data and keys (.local)" },
    "database-url": { value: "URL", help: "your own PostgreSQL server" },
    temporary: { help: "keep no data, print one line of JSON, and end when standard input closes" },
  },
  examples: ["start", "start --port 0 --data-dir /tmp/shop", "start --temporary"],
  async run(values, given, surroundings) {
    refuseArguments(given);
    const port = wholeNumberOf(values, "port", 0, 65_535);
    const environment = { ...(port !== undefined && { PORT: String(port) }) };
    const names = Object.entries(OPTION_OF)
      .filter(([name, option]) => values[option] !== undefined || !surroundings.env(name))
      .map(([name, option]) => `--name=${name}=--${option}`);
    if (values["temporary"]) {
      refuseWithTemporary(values);
      const { program, args, env } = serviceCommand(["--temporary", ...names]);
      return await runProgram(program, args, { ...env, PORT: "0", ...environment });
    }
    const data_dir = dataDir(values, surroundings);
    makeDataDir(data_dir);
    const database_url = textOf(values, "database-url");
    const { program, args, env } = serviceCommand(names);
    return await runProgram(program, args, {
      ...env,
      ...environment,
      DATA_DIR: data_dir,
      ...(database_url && { DATABASE_URL: database_url }),
    });
  },
};

function refuseWithTemporary(values: Values): void {
  for (const name of ["data-dir", "database-url"]) {
    if (values[name] !== undefined) {
      throw new UsageError(`--${name} cannot be used with --temporary, which has its own data`);
    }
  }
}
