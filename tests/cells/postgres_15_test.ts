/** A move needs PostgreSQL 16 in both cells: `deno task cells` refuses 15 on either side. */

import assert from "node:assert/strict";
import { startCells } from "../support/cells/cell_servers.ts";
import { testServer } from "../support/database/database.ts";
import { DEBIAN_15, hasVersion, startSupabaseServer } from "../support/supabase/supabase_server.ts";

const is_there = await hasVersion(15);
const in_ci = Deno.env.get("CI") !== undefined;
if (!is_there) {
  console.warn(`${DEBIAN_15} is not there; its refusal is not tested unless CI is set`);
}

Deno.test({
  name: "deno task cells refuses PostgreSQL 15",
  ignore: !is_there && !in_ci,
  fn: async () => {
    const old = await startSupabaseServer(15);
    try {
      const { superuser_url } = testServer();
      const sides = [["source", old.url, superuser_url], [
        "target",
        superuser_url,
        old.url,
      ]] as const;
      for (const [side, from, to] of sides) {
        const command = [`CELLS_FROM_URL=${from}`, `CELLS_TO_URL=${to}`, "status"];
        const { code, output } = await startCells(command).ended;
        assert.equal(output, `The server of the ${side} must be PostgreSQL 16 or newer\n`);
        assert.equal(code, 1);
      }
    } finally {
      await old.close();
    }
  },
});
