/**
 * Error messages are for people. The test makes a mistake in each field of each operation, and in
 * headers, paths and bodies. The page messages.md shows the messages, so that a reviewer can read
 * them as a user would. `UPDATE_MESSAGES=1` writes it again. It leaves out those for a missing
 * field and for null: they have the words of the field's other messages.
 */

import assert from "node:assert/strict";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { OTHER_MISTAKES } from "../support/http/other_mistakes.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { wrongBodies, wrongQueries, type WrongValue } from "../support/http/wrong_values.ts";

const PAGE = new URL("messages.md", import.meta.url);
/** Words of the validator and of programmers. No message may contain them. */
const JARGON =
  /\b(expected|received|invalid_type|invalid input|int|regex|nan|undefined|union|string|boolean|enum|schema|zod|parse|payload|invalid)\b/i;
/** The message for a missing field or for null, with the words for the field. */
const ABSENT = /^"[^"]+" (?:is required|cannot be null): (leave it out, or )?send (.+)$/;
/** The end of a message about the length of a text. errors_test.ts has it. */
const COUNT = /: it (is empty|has \d+)$/;
/** The field, the values of an enumeration, and other quoted words of a message. */
const VALUES = /"[^"]*"(?:, "[^"]*")*(?: (?:or|and) "[^"]*")?/g;
/** The maximum length of a message. */
const LONGEST = 230;

/** A mistake, and its message. */
interface Line {
  mistake: string;
  message: string;
}

serviceCase("messages of errors name the fault and the value to send", async (_, service) => {
  const sections: [title: string, lines: Line[]][] = [["Fields", await fieldLines(service)]];
  for (const [title, mistakes] of OTHER_MISTAKES) {
    const by_message = new Map<string, string>();
    for (const [mistake, make] of mistakes) {
      const message = judge(await make(service), mistake);
      const others = by_message.get(message);
      by_message.set(message, others ? `${others}\n${mistake}` : mistake);
    }
    sections.push([title, [...by_message].map(([message, mistake]) => ({ mistake, message }))]);
  }
  const page = render(sections);
  if (Deno.env.get("UPDATE_MESSAGES")) await Deno.writeTextFile(PAGE, page);
  const committed = await Deno.readTextFile(PAGE);
  assert.equal(page, committed, "read the new messages, then write them: UPDATE_MESSAGES=1");
});

/** The messages of each field of each operation. Those of the same words are one, with its fields. */
async function fieldLines(service: TestService): Promise<Line[]> {
  /** By wording: the mistakes and the message of the first field, and the names of all. */
  const wordings = new Map<string, Line & { names: Set<string> }>();
  for (const { operation, path, alias_of } of ADDRESSES) {
    if (alias_of !== null) continue;
    const cases = operation.method === "GET"
      ? wrongQueries(operation.query)
      : wrongBodies(operation.body);
    const refused: { wrong: WrongValue; message: string }[] = [];
    for (const wrong of cases) {
      const response = await send(service, operation.method, path, wrong);
      const message = judge(response, `${path} ${wrong.path}: ${wrong.shown}`);
      refused.push({ wrong, message });
    }
    for (const [field, of_field] of Map.groupBy(refused, ({ wrong }) => wrong.path)) {
      const shown = of_field.filter((one) => !isAbsent(one.wrong, one.message, of_field));
      const wordingOf = ({ message }: { message: string }) =>
        message.replace(COUNT, "").replace(VALUES, '"…"').replace(/\d+/g, "…");
      for (const [wording, same] of Map.groupBy(shown, wordingOf)) {
        const mistake = [...new Set(same.map(({ wrong }) => wrong.shown))].join(", ");
        const first = {
          mistake,
          message: same[0]!.message.replace(COUNT, ""),
          names: new Set<string>(),
        };
        wordings.set(wording, wordings.get(wording) ?? first).get(wording)!.names.add(field);
      }
    }
  }
  return [...wordings.values()].map(({ mistake, message, names }) => ({
    mistake: `${[...names].join(", ")}: ${mistake}`,
    message,
  }));
}

/** Whether a message is for a missing field or for null. Asserts that the others have its words. */
function isAbsent(
  { shown }: WrongValue,
  message: string,
  of_field: { wrong: WrongValue; message: string }[],
): boolean {
  const [, may_miss, words] = ABSENT.exec(message) ?? [];
  if (words === undefined) return false;
  const is_required = of_field.some(({ wrong }) => wrong.shown === "missing");
  if (shown === "null") assert.equal(may_miss === undefined, is_required, message);
  return of_field.some((other) => other.message.includes(`must be ${words}`));
}

function send(
  service: TestService,
  method: string,
  path: string,
  { value }: WrongValue,
): Promise<TestResponse> {
  const url = path.replace("{id}", `pay_${"0".repeat(26)}`);
  if (method === "GET") {
    return service.call(method, `${url}?${new URLSearchParams(value as Record<string, string>)}`);
  }
  return service.call(method, url, { body: value });
}

/** The message of a response. Asserts that the response is an error in plain words. */
function judge({ status, body, text }: TestResponse, at: string): string {
  assert.ok(status >= 400, `${at} is accepted: ${text}`);
  const { code, message, param } = body.error;
  assert.doesNotMatch(message, JARGON, at);
  assert.match(message, /^[A-Z"].+[^.]$/, at);
  assert.ok(message.length <= LONGEST, `${at}: ${message.length} characters: ${message}`);
  if (code === "invalid_parameter" && /^"/.test(message)) {
    assert.ok(message.startsWith(`"${param}"`), `${at} names another field than ${param}`);
  }
  return message;
}

function render(sections: [title: string, lines: Line[]][]): string {
  return [
    "# Messages of errors",
    "",
    "This page lists wrong requests, and below each the message of its error. Each field of each",
    "operation is wrong once, but not missing and not null: those messages have the same words. Fields",
    "whose messages differ only in numbers and quoted words are together, with the mistakes and the",
    "message of the first: their schemas have the others. Other mistakes follow. `messages_test.ts`",
    "writes and checks the page.",
    ...sections.flatMap(([title, lines]) => [
      "",
      `## ${title}`,
      "",
      "```text",
      lines.map(({ mistake, message }) => `${mistake}\n    ${message}`).join("\n"),
      "```",
    ]),
    "",
  ].join("\n");
}
