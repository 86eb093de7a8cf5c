/** What the browser keeps by name, and what it must not keep. */

import assert from "node:assert/strict";
import { drafts, storedValues } from "../../apps/console/data/draft.ts";
import { openShelf } from "../../apps/console/data/shelf.ts";
import { FIRST_DRAFT } from "../../apps/console/forms/create_body.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";

const LIMITS = { values: 3, characters: 100 };

/** Opens a shelf in the storage of Deno, as in that of a tab. */
function open() {
  sessionStorage.clear();
  return openShelf<string>(() => sessionStorage, "shelf", LIMITS);
}

Deno.test("openShelf() one value more than the maximum takes the place of the oldest", () => {
  const shelf = open();
  for (const name of ["a", "b", "c"]) shelf.put(name, "1");
  shelf.put("a", "2");
  shelf.put("d", "1");
  assert.deepEqual([...shelf.read()], [["c", "1"], ["a", "2"], ["d", "1"]]);
  shelf.remove("c");
  assert.deepEqual([...shelf.read().keys()], ["a", "d"]);
  shelf.clear();
  assert.equal(sessionStorage.length, 0);
});

const TEXTS: [text: string, is_stored: boolean][] = [
  ["Two chairs, order 1001", true],
  ["DE89 3704 0044 0532 0130 00", true],
  ["x".repeat(LIMITS.characters - 8), true],
  ["x".repeat(LIMITS.characters - 7), false],
  ["card 4242 4242 4242 4242", false],
  [`the key ${generateApiKey("test")}`, false],
  [generateApiKey("live"), false],
  ["whsec_0123456789abcdef", false],
];

for (const [text, is_stored] of TEXTS) {
  Deno.test(`openShelf() "${text.slice(0, 20)}" of ${text.length} characters: ${is_stored ? "stored" : "refused"}`, () => {
    const shelf = open();
    shelf.put("a", "first");
    assert.equal(shelf.put("a", text), is_stored);
    assert.equal(shelf.read().get("a"), is_stored ? text : "first");
  });
}

Deno.test("openShelf() a storage with another content, or without permission, is empty", () => {
  sessionStorage.setItem("shelf", "{");
  assert.equal(openShelf(() => sessionStorage, "shelf", LIMITS).read().size, 0);
  const forbidden = () => {
    throw new Error("SecurityError");
  };
  const shelf = openShelf(forbidden, "shelf", LIMITS);
  shelf.put("a", "1");
  assert.equal(shelf.read().size, 0);
});

Deno.test("drafts: the 20 newest forms of at most 40 000 characters", () => {
  for (let i = 0; i <= 20; i++) drafts.put(`form ${i}`, { text: "a" });
  assert.deepEqual([drafts.read().size, drafts.read().has("form 0")], [20, false]);
  assert.ok(drafts.put("form 1", { text: "a".repeat(39_900) }));
  assert.ok(!drafts.put("form 1", { text: "a".repeat(40_000) }));
  drafts.clear();
});

Deno.test("storedValues() has what the user changed, and no card number, CVC or key", () => {
  const draft = {
    ...FIRST_DRAFT,
    ...{ card_number: "4000 0000 0000 0002", cvc: "999", email: "ada@example.com" },
    ...{ description: "Two chairs", reference: "4242 4242 4242 4242" },
    metadata: [["key", generateApiKey("test")]] as [string, string][],
  };
  assert.deepEqual(storedValues(FIRST_DRAFT, draft), { description: "Two chairs" });
});
