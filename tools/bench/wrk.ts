/**
 * The load: wrk, a generator in C with keep-alive connections, each of which sends its next request
 * after a response. Debian has it as `wrk`.
 */

const PROGRAM = "wrk";
/** Places in a request that each request fills with its own key or id. */
export const KEY_PLACE = "__key__";
export const ID_PLACE = "__id__";

/** Requests to a port of loopback. */
export interface Load {
  port: number;
  connections: number;
  /** Whole seconds. */
  seconds: number;
  /** Complete requests as text, used in turn. */
  requests: readonly string[];
  /** For ID_PLACE, used in turn. */
  ids?: readonly string[];
  /** For KEY_PLACE, used in turn; if empty, each request has a random key. */
  keys?: readonly string[];
}

/** The counts of a run of wrk. */
export interface LoadResult {
  responses: number;
  per_second: number;
  p99_ms: number;
}

/** The output of `wrk --version`; null if it is not installed. */
export async function findWrk(): Promise<string | null> {
  try {
    const { stdout } = await new Deno.Command(PROGRAM, { args: ["--version"] }).output();
    return /^wrk \S+/.exec(new TextDecoder().decode(stdout))?.[0] ?? PROGRAM;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/**
 * Puts load on a server.
 * @throws {Error} if a response has an error's status, or a connection fails
 */
export async function runWrk(load: Load): Promise<LoadResult> {
  const script = await Deno.makeTempFile({ suffix: ".lua" });
  try {
    await Deno.writeTextFile(script, scriptOf(load));
    const { stdout, stderr } = await new Deno.Command(PROGRAM, {
      args: [
        ...["-t1", `-c${load.connections}`, `-d${load.seconds}s`, "--timeout", "10s"],
        ...["-s", script, `http://127.0.0.1:${load.port}/`],
      ],
    }).output();
    const output = new TextDecoder().decode(stdout);
    const line = output.trim().split("\n").at(-1) ?? "";
    if (!line.startsWith("{")) throw new Error(output + new TextDecoder().decode(stderr));
    const { responses, micros, p99_us, ...errors } = JSON.parse(line);
    const failed = Object.entries(errors).filter(([, count]) => count !== 0);
    if (failed.length > 0 || responses === 0) {
      throw new Error(`${responses} responses, errors: ${failed.join(" ")}`);
    }
    return { responses, per_second: responses / micros * 1e6, p99_ms: p99_us / 1000 };
  } finally {
    await Deno.remove(script);
  }
}

/** The script in Lua. Texts are quoted as in JSON, which Lua reads too. */
function scriptOf({ requests, ids = [], keys = [] }: Load): string {
  const texts = requests.map((text) =>
    text.split(/(__key__|__id__)/).map((part) =>
      part === KEY_PLACE ? "0" : part === ID_PLACE ? "1" : JSON.stringify(part)
    ).join(", ")
  );
  const quoted = (list: readonly string[]) => list.map((text) => JSON.stringify(text)).join(", ");
  return `
local texts = { ${texts.map((parts) => `{ ${parts} }`).join(", ")} }
local ids, keys = { ${quoted(ids)} }, { ${quoted(keys)} }
local n, out = 0, {}
math.randomseed(${crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1})
local function key()
  if #keys > 0 then return keys[n % #keys + 1] end
  -- Letters between the random digits, which could otherwise be those of a card number.
  local high, low = math.random(0, 2147483647), math.random(0, 268435455)
  return string.format("%08x-aaaa-4aaa-aaaa-a%07x%04x", high, low, n % 65536)
end
function request()
  n = n + 1
  local parts = texts[n % #texts + 1]
  for i = 1, #parts do
    local part = parts[i]
    if part == 0 then part = key() elseif part == 1 then part = ids[n % #ids + 1] end
    out[i] = part
  end
  return table.concat(out, "", 1, #parts)
end
function done(summary, latency)
  local e = summary.errors
  local form = '{"responses":%d,"micros":%d,"p99_us":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\\n'
  io.write(string.format(form, summary.requests, summary.duration, latency:percentile(99),
    e.connect, e.read, e.write, e.status, e.timeout))
end
`;
}
