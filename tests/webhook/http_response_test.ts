/**
 * The parser of responses: packets that end at every position, and the memory that it uses.
 */
import assert from "node:assert/strict";
import { MalformedResponseError, ResponseReader } from "../../shared/delivery/http_response.ts";
import { ResponseParser } from "../../shared/delivery/llhttp.ts";

/** The properties of a response that a sender uses. */
type Verdict = "malformed" | {
  status: number | undefined;
  retry_after: string | undefined;
  done: boolean;
  reusable: boolean;
};

const RETRY = "Retry-After: 120";
const CASES: [name: string, text: string, expected: Verdict][] = [
  ["with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ended(200)],
  [
    "in chunks, with a trailer",
    `HTTP/1.1 503 No\r\n${RETRY}\r\nTransfer-Encoding: chunked\r\n\r\n` +
    "2;a=b\r\nok\r\n0\r\nRetry-After: 7\r\n\r\n",
    ended(503, "120"),
  ],
  [
    "behind interim responses",
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n${RETRY}\r\n\r\nHTTP/1.1 204 No\r\n\r\n`,
    ended(204),
  ],
  [
    "names in upper case, spaces around the value",
    "HTTP/1.1 429 No\r\nRETRY-AFTER: \t 5 \t \r\nContent-Length: 0\r\n\r\n",
    ended(429, "5"),
  ],
  [
    "a name that begins like the wanted one, and one that ends like it",
    `HTTP/1.1 429 No\r\nRetry-After-X: 1\r\nX-${RETRY}\r\nContent-Length: 0\r\n\r\n`,
    ended(429),
  ],
  [
    "the wanted header twice",
    `HTTP/1.1 429 No\r\n${RETRY}\r\n${RETRY}\r\nContent-Length: 0\r\n\r\n`,
    ended(429),
  ],
  ["that closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", last(200)],
  ["until the connection closes", "HTTP/1.1 200 OK\r\n\r\nbody", { ...last(200), done: false }],
  ["without a reason phrase", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ended(200)],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", last(200)],
  ["a broken body", "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", last(500)],
  [
    "with Retry-After over 64 characters",
    `HTTP/1.1 503 Busy\r\nRetry-After: ${"1".repeat(65)}\r\nContent-Length: 0\r\n\r\n`,
    ended(503),
  ],
  ["> 16 KiB", `HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n${"a".repeat(20_000)}`, last(200)],
];

/**
 * Texts that are refused. Some could be read by two parsers differently (RFC 9112 §2.2, §5, §6).
 */
const MALFORMED: [name: string, text: string][] = [
  ["another protocol", "SSH-2.0-OpenSSH_9.9\r\n\r\n"],
  ["an HTTP/2 preface", "HTTP/2 200\r\n\r\n"],
  ["HTTP/2.0 as text", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"],
  ["the status 99", "HTTP/1.1 099 No\r\n\r\n"],
  ["the status 600", "HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n"],
  ["101 unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"],
  ["two lengths", withHead("Content-Length: 0\r\nContent-Length: 0")],
  ["both framings", withHead("Content-Length: 5\r\nTransfer-Encoding: chunked") + "0\r\n\r\n"],
  ["a length that is no number", withHead("Content-Length: +1")],
  ["a header without a colon", withHead("nonsense")],
  ["a space before the colon", withHead("Content-Length : 0")],
  ["a control character in a header", withHead("Retry-After: a\x01b")],
  ["NUL in a header", withHead("X-A: a\0b")],
  ["LF inside a header", withHead("X-A: b\nc")],
  ["CR inside a header", withHead("X-A: b\rc")],
  ["a lone LF", withHead("a: \n")],
  ["lines that end in LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
  ["spaces before a lone LF", withHead(`a:${" ".repeat(15_800)}\n`)],
  ["tabs before a letter", `HTTP/1.1 200 OK\r\na:${"\t".repeat(16_400)}b`],
  ["a header bomb", `HTTP/1.1 200 OK\r\n${"X-Bomb: aaaaaaaaaaaaaaaa\r\n".repeat(1_000)}`],
  ["one endless header", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(20_000)}`],
  ["endless interim responses", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000)],
];
for (const [name, text] of MALFORMED) CASES.push([name, text, "malformed"]);

/** A response with these lines of its head. */
function withHead(lines: string): string {
  return `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`;
}

for (const [name, text, expected] of CASES) {
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 3, 7, bytes.length]) {
    Deno.test(`ResponseReader reads ${name}, ${size} bytes at a time`, async () => {
      assert.deepEqual(await readIn(bytes, size), expected);
    });
  }
}

for (const kept of [0, 1, 20, 200]) {
  for (const size of [1, 7, 1000]) {
    Deno.test(`ResponseReader.beginning has ${kept} bytes, ${size} bytes at a time`, async () => {
      const text = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n01234567890123456789";
      const bytes = new TextEncoder().encode(text);
      const reader = await ResponseReader.open(kept);
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
      assert.equal(new TextDecoder().decode(reader.beginning), text.slice(0, kept));
      assert.equal(reader.exceeds_beginning, kept < text.length);
      reader.close();
    });
  }
}

Deno.test("ResponseReader.push() prevents reuse of the connection after extra bytes", async () => {
  const text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nH";
  assert.deepEqual(await readIn(new TextEncoder().encode(text), text.length), last(200));
});

Deno.test("ResponseReader.close() frees all memory", async () => {
  const text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
  const bytes = new TextEncoder().encode(text);
  await readIn(bytes, 5);
  const before = ResponseParser.memory_bytes;
  for (let i = 0; i < 5_000; i++) await readIn(bytes, 5);
  assert.equal(ResponseParser.memory_bytes, before);
});

function ended(status: number, retry_after?: string): Exclude<Verdict, string> {
  return { status, retry_after, done: true, reusable: true };
}

/** The last response of a connection. */
function last(status: number) {
  return { ...ended(status), reusable: false };
}

async function readIn(bytes: Uint8Array, size: number): Promise<Verdict> {
  const reader = await ResponseReader.open();
  try {
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    const { status, retry_after, done, reusable } = reader;
    return { status, retry_after, done, reusable };
  } catch (error) {
    if (error instanceof MalformedResponseError) return "malformed";
    throw error;
  } finally {
    reader.close();
  }
}
