/** Operations over a store of its own, for programs that have no live keys. */

import { ChangeWriter } from "../../shared/domain/changes/change_writer.ts";
import { Operations } from "../../shared/domain/operations/operations.ts";
import { createSandboxProvider } from "../../shared/sandbox/sandbox_provider.ts";
import type { FaultStore } from "../../shared/sandbox/fault_store.ts";
import type { Store } from "../../shared/store/store.ts";

/** Creates the operations of sandboxes over a store. */
export function sandboxOperations(store: Store, faults: FaultStore, base_url: string): Operations {
  return new Operations({
    store,
    changes: new ChangeWriter(store),
    at_once: createSandboxProvider(faults, { base_url, checkout_url: null }),
    runner: { run: refuse },
    vault: null,
  });
}

function refuse(): never {
  throw new Error("the benchmark has no live keys here");
}
