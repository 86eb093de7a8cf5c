/** `logs tail`: shows the requests that the sandbox handles. */

import type { LoggedRequest } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  refuseArguments,
  SERVICE_OPTIONS,
  textOf,
  type Values,
  wholeNumberOf,
} from "../command.ts";
import { patientCaller } from "../patient_call.ts";
import { RequestTail } from "../request_tail.ts";
import { openClient } from "../service_access.ts";
import { pause, stopSignal } from "../stop_signal.ts";
import { localTime } from "../terminal_text.ts";

/** Requests appear in the log up to a second after their responses (contract §5). */
const INTERVAL_MS = 1_000;
const DEFAULT_LINES = 10;
/** The log keeps so many (contract §5). */
const MAX_LINES = 1_000;
/** Items of a page. The fewest requests read the log with the most items. */
const LIMIT = 100;

export const LOGS_TAIL: Command = {
  name: "logs tail",
  summary: "Show the requests that the sandbox handles, until Ctrl-C",
  options: {
    lines: { value: "N", help: "begin with the last N requests (10)" },
    method: { value: "METHOD", help: "only GET, POST, PUT or DELETE" },
    path: { value: "PATH", help: "only this path, /api-v1-payments/v1/payments" },
    status: { value: "STATUS", help: "only this status, such as 402" },
    "idempotency-key": { value: "KEY", help: "only requests with this key" },
    "no-follow": { help: "end after the last requests" },
    json: { help: "print a line of JSON for each request" },
    ...SERVICE_OPTIONS,
  },
  examples: ["logs tail", "logs tail --status 402 --json", "logs tail --lines 100 --no-follow"],
  is_stream: true,
  async run(values, args, surroundings) {
    refuseArguments(args);
    const lines = wholeNumberOf(values, "lines", 0, MAX_LINES) ?? DEFAULT_LINES;
    const filters = readFilters(values);
    const { sandbox } = openClient(values, surroundings);
    const tail = new RequestTail(() => sandbox.listRequests({ ...filters, limit: LIMIT }));
    const print = (requests: readonly LoggedRequest[]) => {
      const toLine = values["json"]
        ? (request: LoggedRequest) => JSON.stringify(request)
        : describe;
      for (const request of requests) surroundings.print(`${toLine(request)}\n`);
    };
    print(await tail.last(lines));
    if (values["no-follow"]) return EXIT.success;
    const stop = stopSignal();
    const call = patientCaller(stop, surroundings.printMessage);
    while (!stop.aborted) {
      await pause(INTERVAL_MS, stop);
      print(await call(() => tail.next()) ?? []);
    }
    return EXIT.success;
  },
};

function readFilters(values: Values) {
  // The API checks every value and names the field at fault.
  return {
    method: textOf(values, "method"),
    path: textOf(values, "path"),
    status: textOf(values, "status"),
    idempotency_key: textOf(values, "idempotency-key"),
  };
}

/** One line: the time, the request, its response, and the id that an operator can look up. */
function describe(request: LoggedRequest): string {
  const { id, method, path, query, status, error_code, duration_ms, idempotent_replay, fault } =
    request;
  return [
    localTime(new Date(request.created_at)),
    method,
    query === null ? path : `${path}?${query}`,
    error_code === null ? status : `${status} ${error_code}`,
    `${duration_ms} ms`,
    id,
    ...(idempotent_replay ? ["replay"] : []),
    ...(fault === null ? [] : [`fault ${fault}`]),
  ].join("  ");
}
