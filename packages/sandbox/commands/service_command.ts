/** Makes the commands that send requests to a service, and print the result. */

import type { PaymentsClient, RequestOptions } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  idArgument,
  JSON_OPTION,
  type Option,
  refuseArguments,
  SERVICE_OPTIONS,
  type Surroundings,
  type Values,
} from "../command.ts";
import { jsonText, printResult } from "../output.ts";
import { openChange, openClient } from "../service_access.ts";

type Call<Result> = (client: PaymentsClient, options: RequestOptions) => PromiseLike<Result>;

interface ServiceCommand<Result> extends Omit<Command, "run" | "options"> {
  /** The form of the only argument, an id, such as `pay_…`. */
  id?: string;
  options?: Readonly<Record<string, Option>>;
  /** Options of a command that can change live data; by default it cannot. */
  live?: Readonly<Record<string, Option>>;
  /**
   * Reads the options and the arguments, before the service is looked for. The API checks the
   * values of most, and names the field at fault.
   * @param args the id, or those that `args` names
   */
  begin(values: Values, args: readonly string[], surroundings: Surroundings): Call<Result>;
  /** Returns the text for people; by default it is JSON. */
  describe?(result: Result): string;
  /** Prints the result, if that is more than a text. */
  print?(result: Result, values: Values, surroundings: Surroundings): void;
  /** Whether nothing was paid or done, although there is a result. */
  fails?(result: Result): boolean;
}

export function serviceCommand<Result>(
  { id, options, live, begin, describe = jsonText, print, fails, ...named }: ServiceCommand<Result>,
): Command {
  return {
    ...named,
    ...(id !== undefined && { args: "ID" }),
    options: { ...options, ...live, ...JSON_OPTION, ...SERVICE_OPTIONS },
    async run(values, args, surroundings) {
      if (id === undefined && named.args === undefined) refuseArguments(args);
      const own = id === undefined ? args : [idArgument(args, id)];
      const call = begin(values, own, surroundings);
      const { client, options } = live === undefined
        ? { client: openClient(values, surroundings), options: {} }
        : openChange(values, surroundings);
      const result = await call(client, options);
      if (print) print(result, values, surroundings);
      else printResult(result, describe, values, surroundings);
      return fails?.(result) ? EXIT.failure : EXIT.success;
    },
  };
}
