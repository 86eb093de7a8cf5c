/** Texts in the characters of SEPA. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { saysAnything, toSepaText } from "../../shared/core/sepa_text.ts";

const CONVERTED: [text: string, expected: string][] = [
  ["Müller & Söhne GmbH", "Mueller + Soehne GmbH"],
  ["Größe ÄÖÜ ẞ", "Groesse AeOeUe SS"],
  ["Mu\u0308ller", "Mueller"], // a letter and a mark
  ["Bärbel Garçon", "Baerbel Garcon"],
  ["François Lefèvre-Béziers", "Francois Lefevre-Beziers"],
  ["Núñez Ibáñez", "Nunez Ibanez"],
  ["Åse Ørsted Æbelø", "Ase Orsted Abelo"],
  ["Łukasz Żółć", "Lukasz Zolc"],
  ["Đorđe Šarić", "Dorde Saric"],
  ["Ştefan Țurcanu", "Stefan Turcanu"],
  ["Őrsi Tűz", "Orsi Tuz"],
  ["Þór Ðúr", "Tor Dur"],
  ["İpek Işık ığ", "Ipek Isik ig"],
  ["Γιώργος Θεός Ψυχή", "Giorgos THeos PSychi"],
  ["Иван Щърбов", "Ivan SHTarbov"],
  ["Ђорђе Љубић Њега", "DJordje LJubic NJega"],
  ["Їжак Євген", "Izhak YEvgen"],
  ["O’Brien “Sons”", "O'Brien 'Sons'"],
  ["A – B — C", "A - B - C"],
  ["a_b~c|d\\e", "a-b-c/d/e"],
  ["[x] {y} <z>", "(x) (y) (z)"],
  ["me@example.org; you", "me(at)example.org, you"],
  ["100 € !", "100 E ."],
  ["½ of 3²", "1/2 of 32"],
  ["ﬁne Ｗｉｄｅ", "fine Wide"],
  ["  two\t\n spaces  ", "two spaces"],
  ["non\u00a0breaking", "non breaking"],
  ["李明", ".."],
  ["😀", "."],
  ["\u0000\u0007", ".."],
  ["\u0301", ""],
  ["abc XYZ 019 /-?:().,'+", "abc XYZ 019 /-?:().,'+"],
];

for (const [text, expected] of CONVERTED) {
  Deno.test(`toSepaText() ${JSON.stringify(text)} is ${JSON.stringify(expected)}`, () => {
    assert.equal(toSepaText(text), expected);
  });
}

Deno.test("toSepaText() gives only characters of SEPA, and changes none of its own texts", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    const converted = toSepaText(text);
    assert.match(converted, /^[A-Za-z0-9/\-?:().,'+ ]*$/);
    assert.equal(toSepaText(converted), converted);
  }));
});

const SAYS: [text: string, expected: boolean][] = [
  ["A", true],
  [". 7", true],
  ["", false],
  ["..", false],
  ["- / +", false],
];

for (const [text, expected] of SAYS) {
  Deno.test(`saysAnything() ${JSON.stringify(text)} is ${expected}`, () => {
    assert.equal(saysAnything(text), expected);
  });
}
