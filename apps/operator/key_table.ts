/**
 * Renders the output of `deno task keys list`: the keys by environment, a line for each, cut to
 * the width of the terminal.
 */

/** A row of `pay.list_api_keys`. */
export interface ListedKey {
  id: string;
  environment_id: string;
  account: string;
  environment_name: string;
  livemode: boolean;
  name: string;
  scopes: string[] | null;
  prefix: string;
  last_four: string;
  /** Number of secrets that are valid now. */
  secrets: number;
  last_used_at: Date | null;
  created_at: Date;
  /** Null if the key never expires. */
  expires_at: Date | null;
  revoked_at: Date | null;
}

/** Minimum width of the column of names. On a narrower terminal lines are too long. */
const MIN_NAME = 8;
const GAP = "  ";

/**
 * Renders the keys. They must be sorted by environment.
 * @param width columns of the terminal, or null if lines can have any length
 */
export function renderKeyTable(keys: readonly ListedKey[], width: number | null): string {
  if (keys.length === 0) return "No keys\n";
  const lines: string[] = [];
  const shown = keys.map((key) => [
    key.id,
    key.name.replace(/\s+/g, " "),
    `${key.prefix}...${key.last_four}`,
    stateOf(key),
  ]);
  const widths = [0, 1, 2, 3].map((i) => Math.max(...shown.map((cells) => cells[i]!.length)));
  if (width !== null) {
    const others = widths[0]! + widths[2]! + widths[3]! + 4 * GAP.length;
    widths[1] = Math.min(widths[1]!, Math.max(MIN_NAME, width - others));
  }
  let environment_id = "";
  for (const [i, key] of keys.entries()) {
    if (key.environment_id !== environment_id) {
      environment_id = key.environment_id;
      const mode = key.livemode ? "live" : "test";
      if (lines.length > 0) lines.push("");
      lines.push(
        fit(`${key.account} ${mode} ${key.environment_id} ${key.environment_name}`, width),
      );
    }
    const cells = shown[i]!.map((cell, i) => fit(cell, widths[i]!).padEnd(widths[i]!));
    lines.push(GAP + cells.join(GAP).trimEnd());
    if (key.scopes) lines.push(...wrapScopes(key.scopes, width));
  }
  return lines.join("\n") + "\n";
}

function stateOf({ revoked_at, expires_at, secrets, last_used_at }: ListedKey): string {
  if (revoked_at) return `revoked ${day(revoked_at)}`;
  if (secrets === 0) return expires_at ? `expired ${day(expires_at)}` : "expired";
  return [
    last_used_at ? `used ${day(last_used_at)}` : "never used",
    ...secrets === 1 ? [] : [`${secrets} secrets`],
    ...expires_at ? [`expires ${day(expires_at)}`] : [],
  ].join(", ");
}

function day(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function fit(text: string, width: number | null): string {
  return width === null || text.length <= width ? text : `${text.slice(0, width - 3)}...`;
}

function wrapScopes(scopes: readonly string[], width: number | null): string[] {
  const indent = GAP + GAP;
  const lines: string[] = [indent + "scopes:"];
  for (const scope of scopes) {
    const last = lines.at(-1)!;
    if (width !== null && last.length + 1 + scope.length > width) lines.push(indent + scope);
    else lines[lines.length - 1] = `${last} ${scope}`;
  }
  return lines;
}
