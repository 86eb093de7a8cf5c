/** The XML of banks: encodings, and everything that is refused, with its place. */

import assert from "node:assert/strict";
import { BankFileError } from "../../shared/connectors/bank/bank_file_error.ts";
import { readEntries, readFile, writeEntry, writeFile } from "../support/connectors/bank_file.ts";

const NAME = "<NtryDtls><TxDtls><RltdPties><Dbtr><Pty><Nm>Zoë Škoda</Nm></Pty></Dbtr></RltdPties>" +
  "</TxDtls></NtryDtls>";
const file = writeFile([{ entries: writeEntry().replace("</Ntry>", `${NAME}</Ntry>`) }]);
const bytesOf = (text: string) => new TextEncoder().encode(text);

function latin(text: string): Uint8Array<ArrayBuffer> {
  // Windows-1252 has š, which ISO-8859-1 does not have. Everything else here is Latin 1.
  return Uint8Array.from(text, (letter) => letter === "Š" ? 0x8a : letter.charCodeAt(0));
}

function utf16(text: string, is_big: boolean, has_mark: boolean): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array((text.length + 1) * 2);
  const view = new DataView(bytes.buffer);
  [0xfeff, ...Array.from(text, (letter) => letter.charCodeAt(0))].forEach((code, at) =>
    view.setUint16(at * 2, code, !is_big)
  );
  return has_mark ? bytes : bytes.subarray(2);
}

const declared = (encoding: string) => file.replace('encoding="UTF-8"', `encoding="${encoding}"`);

const ENCODINGS: readonly (readonly [name: string, bytes: Uint8Array<ArrayBuffer>])[] = [
  ["UTF-8", bytesOf(file)],
  ["UTF-8 with a byte order mark", bytesOf("\ufeff" + file)],
  ["UTF-8 after white space", bytesOf(`\r\n  ${file}`)],
  ["UTF-8 after a byte order mark and white space", bytesOf(`\ufeff\r\n${file}`)],
  ["windows-1252 after white space", latin(`\n${declared("windows-1252")}`)],
  ["UTF-8 before zeros", bytesOf(`${file}\r\n\0\0`)],
  ["UTF-8 before the end of a file of DOS", bytesOf(`${file}\x1a\r\n`)],
  ["UTF-8 without a declaration", bytesOf(file.slice(file.indexOf("<Document")))],
  ["windows-1252", latin(declared("windows-1252"))],
  ["ISO-8859-1, written as windows-1252", latin(declared("ISO-8859-1"))],
  ["UTF-16, little end first", utf16(declared("UTF-16"), false, true)],
  ["UTF-16, big end first", utf16(declared("UTF-16"), true, true)],
  ["UTF-16 without a mark", utf16(declared("UTF-16"), false, false)],
  ["UTF-16 without a mark, big end first", utf16(declared("UTF-16"), true, false)],
];

for (const [name, bytes] of ENCODINGS) {
  for (const piece_bytes of [1, 4095, 1_000_000]) {
    Deno.test(`readXml() reads ${name} in pieces of ${piece_bytes} bytes`, async () => {
      const names = (await readFile(bytes, { piece_bytes })).flatMap((record) =>
        record.record === "detail" ? [record.counterparty.name] : []
      );
      assert.deepEqual(names, ["Zoë Škoda"]);
    });
  }
}

Deno.test("readXml() reads elements with a prefix, and an envelope around the message", async () => {
  const prefixed = file.replace(/<(\/?)(\w)/g, "<$1ns2:$2").replace("xmlns=", "xmlns:ns2=");
  assert.equal((await readEntries(prefixed)).length, 1);
  const [declaration, ...lines] = file.split("\n");
  const envelope = `${declaration}<DataPDU><Header><GrpHdr>x</GrpHdr></Header><Body>${
    lines.join("\n")
  }</Body>
    </DataPDU>`;
  assert.equal((await readEntries(envelope)).length, 1);
});

Deno.test("readXml() reads CDATA, entities of XML and comments", async () => {
  const text = file.replace("Zoë Škoda", "<![CDATA[A & ]]>B &amp; <!-- C -->&#x44;");
  const [entry] = await readEntries(text);
  assert.equal(entry?.details[0]?.counterparty.name, "A & B & D");
});

const ROOT = '<?xml version="1.0"?>\n';
const LAUGHS = `${ROOT}<!DOCTYPE lolz [<!ENTITY a "lol">${
  Array.from({ length: 9 }, (_, at) => `<!ENTITY a${at} "&a;&a;&a;&a;">`).join("")
}]><Document>&a8;</Document>`;

/** The file with another text in place of the name, or of an element. */
const named = (text: string) => bytesOf(file.replace("Zoë", text));
const cut = (from: string, text: string) => bytesOf(file.replace(from, text));

/** Files that are refused, with the place and the reason. */
const REFUSED: readonly [name: string, bytes: Uint8Array<ArrayBuffer>, error: RegExp][] = [
  ["nothing", bytesOf(""), /^Line 1, column 0: not well-formed XML: document must contain/],
  ["a text", bytesOf("Hello"), /^Line 1, .*not well-formed XML/],
  ["a billion laughs", bytesOf(LAUGHS), /^Line 2, column \d+: the file has a DOCTYPE/],
  [
    "an external entity",
    bytesOf(`${ROOT}<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>`),
    /^Line 2, .*DOCTYPE/,
  ],
  ["an endless DOCTYPE", bytesOf(`${ROOT}<!DOCTYPE ${"a".repeat(5_000_000)}`), /10000 characters/],
  ["an entity of its own", named("&xxe;"), /^Line 5, column \d+, <Nm>: not .*: undefined entity/],
  [
    "200 000 levels",
    bytesOf(ROOT + "<a>".repeat(200_000)),
    /^Line 2, column 123, <a>: .* 40 levels/,
  ],
  [
    "200 000 levels inside of an entry",
    named("<a>".repeat(200_000)),
    /^Line 5, .*<a>: .* 40 levels/,
  ],
  ["a long text", named("a".repeat(10_001)), /^Line 5, .*<Nm>: .* more than 10000 characters$/],
  ["an endless text", named("a".repeat(5_000_000)), /10000 characters/],
  ["an endless attribute", bytesOf(`<a b="${"c".repeat(5_000_000)}`), /10000 characters/],
  ["an endless comment", bytesOf(`<a><!-- ${"c".repeat(5_000_000)}`), /10000 characters/],
  ["a text of many short parts", named("<![CDATA[abc]]>".repeat(5_000)), /10000 characters/],
  [
    "an element with very many elements",
    named("<a/>".repeat(10_000)),
    /^Line 5, column \d+, <\w+>: an element has more than 10000 elements$/,
  ],
  [
    "an entry with very many elements",
    cut("<NtryDtls>", "<Chrgs/>".repeat(1001) + "<NtryDtls>"),
    /^Line 5, column \d+, <Chrgs>: the element around has more than 1000 elements$/,
  ],
  [
    "half of a file",
    bytesOf(file.slice(0, file.indexOf("</Dbtr>"))),
    /^Line 5, column \d+, <Dbtr>: not well-formed XML: unclosed tag: Dbtr/,
  ],
  ["a wrong end", cut("</Nm>", "</Name>"), /^Line 5, .*not well-formed XML: unexpected close tag/],
  ["Latin 1 that declares UTF-8", latin(file), /^Line 5, .*<Nm>: .* not in the encoding UTF-8$/],
  [
    "UTF-8 that ends inside of a letter",
    bytesOf(file.slice(0, file.indexOf("Š") + 1)).subarray(0, -1),
    /the file is not in the encoding UTF-8$/,
  ],
  ["half a letter", utf16(declared("UTF-16"), false, true).subarray(0, -1), /not .* UTF-16LE$/],
  ["UTF-8 as UTF-16", bytesOf(declared("UTF-16")), /declares .* UTF-16, but has another one$/],
  ["an unknown encoding", bytesOf(declared("klingon")), /the encoding klingon is not known$/],
  ["zeros", new Uint8Array(100_000), /^Line 1, .*not well-formed XML/],
  ["a ZIP file", bytesOf("PK\x03\x04" + "\x00".repeat(2000)), /^Line 1, .*: unpack it first$/],
  ["a gzip file", Uint8Array.of(0x1f, 0x8b, 8, 0), /: the file is packed: unpack it first$/],
  [
    "a fault after white space",
    bytesOf(`\n\n${file.replace("</Nm>", "</Name>")}`),
    /^Line 7, column \d+, <\w+>: not well-formed XML: unexpected close tag/,
  ],
  ["zeros inside", named("\0"), /^Line 5, column \d+, <Nm>: not well-/],
  ["text after the end", bytesOf(`${file}\0 a`), /^Line 7, .*not well-formed XML/],
  ["a web page", bytesOf("<html><body/></html>"), /<html>: the file has no message of a bank/],
  [
    "an order to a bank",
    bytesOf("<Document>\n<CstmrCdtTrfInitn/></Document>"),
    /^Line 2, column 19, <CstmrCdtTrfInitn>: not one of the messages that banks send: camt.052/,
  ],
];

for (const [name, bytes, error] of REFUSED) {
  Deno.test(`readXml() refuses ${name}`, async () => {
    for (const piece_bytes of [997, 10_000_000]) {
      await assert.rejects(readFile(bytes, { piece_bytes }), (thrown) => {
        assert.ok(thrown instanceof BankFileError, String(thrown));
        assert.match(thrown.message, error);
        return true;
      });
    }
  });
}

Deno.test("readXml() refuses a file over the limit of the caller, and reads one of that size", async () => {
  const bytes = bytesOf(file);
  await readFile(bytes, { bytes_max: bytes.length });
  await assert.rejects(
    readFile(bytes, { bytes_max: bytes.length - 1 }),
    new RegExp(`the file has more than ${bytes.length - 1} bytes`),
  );
});

Deno.test("readXml() stops at the first fault: an endless file is refused", async () => {
  let pieces = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield bytesOf("<Document><BkToCstmrStmt>");
    for (;; pieces++) yield bytesOf("<a>".repeat(100));
  }
  const { readBankFile } = await import("../../shared/connectors/bank/read_bank_file.ts");
  await assert.rejects(Array.fromAsync(readBankFile(endless(), Infinity)), /40 levels/);
  assert.ok(pieces < 10, `${pieces} pieces`);
});
