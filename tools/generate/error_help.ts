/** The explanations of the error codes in docs/errors.md, for OpenAPI and for agents. */

import PAGE from "../../docs/errors.md" with { type: "text" };
import type { ErrorCode } from "../../shared/core/errors.ts";

/** The sections for the values that messages of this code refer to. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  invalid_parameter: ["Test values", "Event types"],
};

/** Returns the cause of an error: a clause without a full stop. */
export function causeOf(code: ErrorCode): string {
  const [, cause] = /^HTTP \d+, type `\w+`: (.*?)\.\n\n/ms.exec(sectionOf(code)) ?? [];
  if (cause === undefined) throw new Error(`docs/errors.md does not say when there is ${code}`);
  return cause.replaceAll("\n", " ");
}

/** Returns the section of a code as Markdown, with the values that its messages refer to. */
export function explainError(code: ErrorCode): string {
  return [code, ...VALUES[code] ?? []].map(sectionOf).join("");
}

function sectionOf(title: string): string {
  const section = PAGE.split(/^(?=## )/m).find((text) => text.startsWith(`## ${title}\n`));
  if (section === undefined) throw new Error(`docs/errors.md has no section "${title}"`);
  return section;
}
