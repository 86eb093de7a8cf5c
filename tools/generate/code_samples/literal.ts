/** Values of a request as literals of a language: on one line if they fit, or a line a member. */

/** Longest line of a sample, so that the column of the page shows it whole. */
const MAX_COLUMNS = 50;

export interface LiteralForm {
  /** `null`, `true` and `false`. */
  constant(value: boolean | null): string;
  /** The name of a member with its separator, such as `"amount": `. */
  member(name: string): string;
  /** Spaces inside the braces of an object on one line. */
  padding: "" | " ";
  step: number;
  /** Whether a comma follows the last member of an object on several lines. */
  trailing_comma: boolean;
}

/** Returns the literal. `indent` is the indentation of the line on which it begins. */
export function literal(value: unknown, form: LiteralForm, indent: number, before = 0): string {
  const line = onOneLine(value, form);
  if (typeof value !== "object" || value === null || indent + before + line.length <= MAX_COLUMNS) {
    return line;
  }
  const deeper = indent + form.step;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const lines = Object.entries(value).map(([name, member]) => {
    const start = Array.isArray(value) ? "" : form.member(name);
    return `${" ".repeat(deeper)}${start}${literal(member, form, deeper, start.length + 1)}`;
  });
  const end = form.trailing_comma ? "," : "";
  return `${open}\n${lines.join(",\n")}${end}\n${" ".repeat(indent)}${close}`;
}

function onOneLine(value: unknown, form: LiteralForm): string {
  if (value === null || typeof value === "boolean") return form.constant(value);
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => onOneLine(item, form)).join(", ")}]`;
  const members = Object.entries(value).map(([name, member]) =>
    form.member(name) + onOneLine(member, form)
  );
  if (members.length === 0) return "{}";
  return `{${form.padding}${members.join(", ")}${form.padding}}`;
}
