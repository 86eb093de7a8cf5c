/** The bases of the operations on one kind of resource. */

import { type List, listOf } from "./list.ts";
import type { ReadOptions } from "./request_options.ts";
import type { ListParams } from "./resources.ts";
import type { Transport } from "./transport.ts";

/** Operations that send requests with the key of the client. */
export class Resource {
  /** All its fields are private, so a resource in a log shows no secret. */
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }
}

/** Operations on the resources of a path, which have ids and a list. */
export abstract class Collection<T, Params extends ListParams = ListParams> extends Resource {
  protected abstract readonly path: string;

  /** Retrieves one by its id. */
  retrieve(id: string, options?: ReadOptions): Promise<T> {
    return this.transport.get([this.path, id], options);
  }

  /** Lists them, newest first. */
  list(params?: Params, options?: ReadOptions): List<T> {
    return listOf(this.transport, [this.path], params, options);
  }
}
