/** Card numbers: check digit, brands, and the search in free text. */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  cardBrand,
  containsCardNumber,
  normalizeCardNumber,
} from "../../shared/core/card_number.ts";

const CARD = "4242424242424242";

const BRANDS: [digits: string, brand: string][] = [
  [CARD, "visa"],
  ["4000002500003155", "visa"],
  ["5555555555554444", "mastercard"],
  ["5200828282828210", "mastercard"],
  ["2223003122003222", "mastercard"],
  ["2720990000000007", "mastercard"],
  ["378282246310005", "amex"],
  ["341111111111111", "amex"],
  ["6011111111111117", "discover"],
  ["6445644564456445", "discover"],
  ["6500000000000002", "discover"],
  ["3056930009020004", "diners"],
  ["36227206271667", "diners"],
  ["3566002020360505", "jcb"],
  ["6200000000000005", "unionpay"],
  ["6221260000000000", "unionpay"],
  ["8171999927660000", "unionpay"],
  ["2220990000000000", "unknown"],
  ["2721000000000000", "unknown"],
  ["9999999999999995", "unknown"],
  ["0000000000000000", "unknown"],
  ["42424", "unknown"],
  ["", "unknown"],
  ["４２４２４２", "unknown"],
];

for (const [digits, brand] of BRANDS) {
  Deno.test(`cardBrand() of "${digits}" is ${brand}`, () => assert.equal(cardBrand(digits), brand));
}

Deno.test("containsCardNumber() takes exactly separators between groups, of all of Unicode", () => {
  const SEPARATOR = /^[\s\p{Pd}\u2212+._/,:|\p{Cf}\p{M}]*$/u;
  let separators = 0;
  for (let code = 0x80; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code);
    const form = character.normalize("NFKC");
    if (!character.isWellFormed() || /\p{Nd}/u.test(form)) continue;
    const text = ["4242", "4242", "4242", "4242"].join(character);
    const is_separator = SEPARATOR.test(form);
    assert.equal(containsCardNumber(text), is_separator, `U+${code.toString(16)}`);
    if (is_separator) separators++;
  }
  assert.ok(separators > 2000);
});

Deno.test("normalizeCardNumber() removes only spaces and dashes", () => {
  assert.equal(normalizeCardNumber(" 4242 4242-4242\u00a04242 "), CARD);
  assert.equal(normalizeCardNumber("4242.4242/a"), "4242.4242/a");
});

/** Writes each digit percent-encoded, as `%34`. */
function percentEncoded(text: string): string {
  return Array.from(text, (character) => `%${character.charCodeAt(0).toString(16)}`).join("");
}

const FULL_WIDTH = inDigitsFrom(0xff10);
const ARABIC_INDIC = inDigitsFrom(0x0660);

const TEXTS: [name: string, text: string, contains: boolean][] = [
  ["the bare number", CARD, true],
  ["15 digits", "378282246310005", true],
  ["13 digits", "4222222222222", true],
  ["19 digits", "4000000000000000006", true],
  ["letters against it", `x${CARD}y`, true],
  ["a separator before and after", `- ${CARD} -`, true],
  ["another run of card length before", `4242424242424241, ${CARD}`, true],
  ["a zero-width space beside a space", "4242 \u200b4242\u200b 4242 4242", true],
  ["key caps", CARD.split("").join("\ufe0f\u20e3") + "\ufe0f\u20e3", true],
  ["full-width digits", FULL_WIDTH, true],
  [
    "digits of three scripts",
    FULL_WIDTH.slice(0, 5) + ARABIC_INDIC.slice(5, 9) + CARD.slice(9),
    true,
  ],
  ["circled digits", inDigitsFrom(0x2460 - 1), true],
  ["a card number and one more digit", "4000000000000000006" + "0", false],
  ["a wrong check digit", "4242424242424241", false],
  ["12 digits", "424242424242", false],
  ["a number within a longer run", `1234${CARD}`, false],
  ["19 digits with four in front", "1234 4000000000000000006", true],
  ["a number and four digits", `${CARD} 1230`, true],
  ["four digits and a number", `1230-${CARD}`, true],
  ["a number in groups and a CVC", "4242 4242 4242 4242 123", true],
  ["a number in groups and an expiry", "4242 4242 4242 4242 12/34", true],
  ["a number amid a long separated run", `12 34 56 78 90 12 34 56 ${CARD} 12 34`, true],
  ["a number after a group that is too long", `12345678901234567890 ${CARD}`, true],
  ["a number before a group that is too long", `${CARD} 12345678901234567890`, true],
  ["a number that ends within a group", "4242 4242 4242 42421 2345", false],
  ["a number that begins within a group", "14242 4242 4242 4242 2346", false],
  [
    "numbers on both sides of a group that is too long",
    `42424242 ${"0".repeat(20)} 42424242`,
    false,
  ],
  ["dates side by side", "2026-11-20 2026-11-21", false],
  ["dates of which the digits pass the check", "2026-11-20 2026-11-24", false],
  ["slashes in a path", "/pay/4242/4242/4242/4242/confirm", true],
  ["colons", "pan:4242:4242:4242:4242", true],
  ["a form's spaces", "pan=4242+4242+4242+4242&cvc=123", true],
  ["a plus sign before", "+4242424242424242", true],
  ["uneven groups, all with points", "42.4242.4242.424242", true],
  ["the print of American Express", "3782.822463/10005", true],
  ["the print of Diners Club", "3622_720627.1667", true],
  ["percent-encoded spaces", "4242%204242%204242%204242", true],
  [
    "percent-encoded no-break spaces",
    encodeURIComponent("4242\u00a04242\u00a04242\u00a04242"),
    true,
  ],
  ["groups of four with several separators", "4242/4242:4242,4242", true],
  ["percent-encoded full-width digits", encodeURIComponent(FULL_WIDTH), true],
  ["percent-encoded digits among others", "https://x.example/%3424242%34242424242", true],
  ["broken percent-encoding", "%zz%4%C0 4242424242424242 %", true],
  ["a wrong check digit behind percent-encoding", "4242%204242%204242%204241", false],
  ["digits in a hex id without letters", "424242424242424200000000", false],
  ["an id of a sandbox with a clock", "key_1q3qnycx4242424242424242a0", false],
  ["an id of digits", "key_00000000004242424242424242", false],
  ["a number beside an id", "key_1q3qnycx00000000cc2w30pra0 4242424242424242", true],
  ["a number in a hex hash", "9f86d0814242424242424242aa9f86d0814242aa", false],
  ["a number with a letter at each end", "a4242424242424242f", true],
  ["amounts", "40.00, 13.75, 20.00, 18.99, 42.50, 42.42", false],
  ["coordinates", "52.520008, 13.404950", false],
  ["addresses and times", "34.117.59.81:1740601436630", false],
  ["a time", "2026-11-22T13:00:00.000Z", false],
  ["an identifier", "pay_01j9z3k4m5n6p7q8r9s0t1v2w3", false],
];

for (const [name, text, contains] of TEXTS) {
  Deno.test(`containsCardNumber() is ${contains} for ${name}`, () => {
    assert.equal(containsCardNumber(text), contains);
  });
}

/** The check digit of ISO/IEC 7812-1, written without a look at the service. */
function passesLuhn(digits: string): boolean {
  const doubled = Array.from(digits, Number).map((digit, at) =>
    (digits.length - at) % 2 === 0 ? (digit * 2) % 9 || digit : digit
  );
  return doubled.reduce((sum, digit) => sum + digit, 0) % 10 === 0;
}

/** The first digits of payment cards. */
const LEADS = ["3", "4", "5", "6", "81"];
const lead = fc.constantFrom(...LEADS);

function withCheckDigit(body: string): string {
  return body + [..."0123456789"].find((last) => passesLuhn(body + last));
}

Deno.test("containsCardNumber() finds a valid number in every grouping", () => {
  const gaps = fc.array(fc.constantFrom("", "", "", " ", "-", "  ", " - "), {
    minLength: 19,
    maxLength: 19,
  });
  fc.assert(fc.property(lead, fc.stringMatching(/^[0-9]{11,16}$/), gaps, (lead, body, gaps) => {
    const digits = withCheckDigit(lead + body);
    const text = Array.from(digits, (digit, at) => digit + gaps[at]).join("");
    assert.ok(containsCardNumber(`ref ${text}.`));
  }));
});

Deno.test("containsCardNumber() finds a valid number with any separator", () => {
  const separators = [..."._/,:|+ -"];
  const joint = fc.array(fc.constantFrom(...separators), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join(""));
  const size = fc.constantFrom(1, 2, 3, 4, 5, 6, 8);
  const spelling = fc.constantFrom<(text: string) => string>(
    (text) => text,
    encodeURIComponent,
    percentEncoded,
    (text) => encodeURIComponent(encodeURIComponent(text)),
  );
  fc.assert(
    fc.property(
      lead,
      fc.stringMatching(/^[0-9]{11,16}$/),
      joint,
      size,
      spelling,
      (lead, body, joint, size, spell) => {
        const groups = withCheckDigit(lead + body).match(new RegExp(`.{1,${size}}`, "g"))!;
        const text = `ref ${groups.join(joint)} end`;
        // 13 digits after a plus sign are a telephone number.
        assert.ok(containsCardNumber(spell(text)), text);
      },
    ),
    { numRuns: 2_000 },
  );
});

Deno.test("containsCardNumber() finds only whole groups that make a valid number", () => {
  const group = fc.stringMatching(/^[0-9]{1,21}$/);
  fc.assert(
    fc.property(fc.array(group, { maxLength: 8 }), fc.constantFrom(" ", "-"), (groups, joint) => {
      const windows = groups.flatMap((_, from) =>
        groups.slice(from).map((_, more) => groups.slice(from, from + more + 1))
      );
      const expected = windows.some((window) => {
        const digits = window.join("");
        const begins = window.length === 1
          ? !/^(1|20)/.test(digits)
          : /^([3-6]|81|2[2-7].{14}$)/.test(digits);
        return begins && /^.{13,19}$/.test(digits) && passesLuhn(digits);
      });
      assert.equal(containsCardNumber(groups.join(joint)), expected);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("containsCardNumber() knows the value of each digit of other scripts", () => {
  const everyDigit = "4123567890987656";
  assert.ok(passesLuhn(everyDigit));
  let scripts = 0;
  for (let zero = 0x80; zero <= 0x10ffff - 9; zero++) {
    // The ten digits of a script stand next to each other.
    const [before, first, last] = [zero - 1, zero, zero + 9].map((code) =>
      /\p{Nd}/u.test(String.fromCodePoint(code))
    );
    if (before || !first || !last) continue;
    scripts++;
    const text = inDigitsFrom(zero, everyDigit);
    assert.ok(containsCardNumber(text), text);
  }
  assert.ok(scripts > 60);
});

/** The test card, or another number, in the digits that start at a code point. */
function inDigitsFrom(zero: number, digits = CARD): string {
  return Array.from(digits, (digit) => String.fromCodePoint(zero + Number(digit))).join("");
}

Deno.test("containsCardNumber() is false for UUIDs", () => {
  for (let i = 0; i < 20_000; i++) {
    const uuid = crypto.randomUUID();
    const has_letter = /[a-f]/.test(uuid);
    assert.equal(has_letter && containsCardNumber(`order ${uuid}`), false, uuid);
  }
  assert.ok(containsCardNumber(`${crypto.randomUUID()} 4242 4242 4242 4242`), "a card beside one");
  assert.ok(containsCardNumber("42424242-4242-4242-0000-000000000000"), "digits in that shape");
});

/** Typical references and idempotency keys of merchants, made from random integers. */
const REFERENCES: [name: string, make: (random: (below: number) => number) => string][] = [
  ["a UUID without dashes", (r) => text(r, "0123456789abcdef", 31) + "f"],
  ["a ULID", (r) => `01J${text(r, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 23)}`],
  ["a nanoid", (r) => text(r, `${ALPHANUMERIC}_-`, 21)],
  ["a KSUID", (r) => `2${text(r, ALPHANUMERIC, 26)}`],
  ["a SHA-256", (r) => `a${text(r, "0123456789abcdef", 63)}`],
  ["a wallet", (r) => `0x${text(r, "0123456789abcdef", 39)}A`],
  ["a hash of a transaction", (r) => `0x${text(r, "0123456789abcdef", 63)}a`],
  ["an object id", (r) => `67f${text(r, "0123456789abcdef", 21)}`],
  ["an order of a day", (r) => `order-${time(r).slice(0, 10)}-${text(r, DIGITS, 6)}`],
  ["a compact date", (r) => `ORD${time(r).slice(0, 10).replaceAll("-", "")}${text(r, DIGITS, 6)}`],
  ["a time", (r) => time(r)],
  ["a time and a counter", (r) => `${time(r)}/${text(r, DIGITS, 5)}`],
  ["milliseconds", (r) => String(Date.parse(time(r)))],
  ["milliseconds and a counter", (r) => `${Date.parse(time(r))}-${r(1000)}`],
  ["microseconds", (r) => `${Date.parse(time(r))}${text(r, DIGITS, 3)}`],
  ["nanoseconds", (r) => `${Date.parse(time(r))}${text(r, DIGITS, 6)}`],
  ["a snowflake of 19 digits", (r) => `1${text(r, DIGITS, 18)}`],
  ["a telephone number", (r) => `+49 15${r(10)} ${text(r, DIGITS, 8)}`],
  ["a plain telephone number", (r) => `+4915${text(r, DIGITS, 9)}`],
  ["amounts", (r) => Array.from({ length: 6 }, () => `${r(99)}.${text(r, DIGITS, 2)}`).join(", ")],
  ["coordinates", (r) => `${r(90)}.${text(r, DIGITS, 6)}, ${r(90)}.${text(r, DIGITS, 6)}`],
  ["an address and a time", (r) => `34.${r(256)}.${r(256)}.${r(256)}:${Date.parse(time(r))}`],
  ["a path", (r) => `customers/${text(r, DIGITS, 6)}/orders/${text(r, DIGITS, 8)}`],
];

const DIGITS = "0123456789";
const ALPHANUMERIC = `${DIGITS}ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz`;

function text(random: (below: number) => number, alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[random(alphabet.length)]).join("");
}

/** A time between 2020 and 2033. */
function time(random: (below: number) => number): string {
  return new Date(1_600_000_000_000 + random(399_999_999) * 1_000 + random(1_000)).toISOString();
}

for (const [name, make] of REFERENCES) {
  Deno.test(`containsCardNumber() is false for ${name}`, () => {
    let state = 20_261_122;
    // A linear congruential generator (Numerical Recipes) makes the same references in every run.
    const random = (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor(state / 2 ** 32 * below);
    };
    const wrong = Array.from({ length: 5_000 }, () => make(random)).filter(containsCardNumber);
    // At most one in a thousand looks like a card number by chance.
    assert.ok(wrong.length <= 5, `${wrong.length}: ${wrong.slice(0, 3)}`);
  });
}
