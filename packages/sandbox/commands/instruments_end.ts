/** `instruments end`: ends a saved instrument, which no later payment can use. */

import {
  CHANGE_OPTIONS,
  type Command,
  EXIT,
  idArgument,
  JSON_OPTION,
  SERVICE_OPTIONS,
} from "../command.ts";
import { instrumentText } from "../instrument_text.ts";
import { printResult } from "../output.ts";
import { openChange } from "../service_access.ts";

export const INSTRUMENTS_END: Command = {
  name: "instruments end",
  args: "ID",
  summary: "End a saved card or mandate: no later payment can use it",
  options: { ...CHANGE_OPTIONS, ...JSON_OPTION, ...SERVICE_OPTIONS },
  examples: ["instruments end ins_1m7wvb3bsdsgqhzksxxwbk1970"],
  async run(values, args, surroundings) {
    const id = idArgument(args, "ins_…");
    const { client, options } = openChange(values, surroundings);
    printResult(await client.instruments.end(id, options), instrumentText, values, surroundings);
    return EXIT.success;
  },
};
