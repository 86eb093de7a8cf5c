/** Results of operations that come without a provider event. */

import type { OperationResult } from "../../../shared/store/operation_row.ts";
import type { ProviderStore } from "../../../shared/store/provider_store.ts";

/** Records a result that changes nothing but its operation. */
export async function recordResult(
  store: ProviderStore,
  { environment_id, id, ...operation }: OperationResult & { environment_id: string; id: string },
): Promise<void> {
  await store.record([{
    environment_id,
    operation_id: id,
    operation,
    provider_events: [],
    change: null,
    response: null,
  }]);
}
