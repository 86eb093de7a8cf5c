/**
 * Declared faults of the sandbox: the next matching request, webhook delivery or call to the
 * simulated provider fails in a certain way (contract §7).
 */

import type {
  DeliveryFault,
  MethodKind,
  ProviderFault,
  ProviderOperation,
  RequestFault,
  RequestMethod,
} from "./vocabulary.ts";
import type { EventType } from "./webhooks.ts";

/** Conditions of a fault on requests. A request that has all of these values matches. */
export interface RequestConditions {
  method?: RequestMethod | undefined;
  /** The path after the name of the function, with an id or `{id}`: `/v1/payments/{id}/refund`. */
  path?: string | undefined;
  idempotency_key?: string | undefined;
}

/** Conditions of a fault on webhook deliveries. */
export interface DeliveryConditions {
  endpoint_id?: string | undefined;
  event_type?: EventType | undefined;
}

/** Conditions of a fault on calls to the simulated provider. */
export interface ProviderConditions {
  method_kind?: MethodKind | undefined;
  operation?: ProviderOperation | undefined;
}

/** The kinds of things that fail, with their faults and conditions. */
type Faulty =
  | { on: "request"; fault: RequestFault; where?: RequestConditions | undefined }
  | { on: "delivery"; fault: DeliveryFault; where?: DeliveryConditions | undefined }
  | { on: "provider"; fault: ProviderFault; where?: ProviderConditions | undefined };

/** `POST /faults` */
export type CreateFaultInput = Faulty & {
  /** How often it happens: 1 to 1 000. By default 1. */
  times?: number | undefined;
  /** The duration of a `delay` in milliseconds: 1 to 10 000. Other faults have none. */
  delay_ms?: number | undefined;
};

/** A declared fault. */
export interface Fault {
  /** `flt_…` */
  id: string;
  object: "fault";
  on: Faulty["on"];
  fault: RequestFault | DeliveryFault | ProviderFault;
  /** How often it was declared to happen. */
  times: number;
  /** How often it will still happen. */
  left: number;
  where: RequestConditions & DeliveryConditions & ProviderConditions;
  delay_ms: number | null;
  created_at: string;
}

/** A deleted fault. */
export interface DeletedFault {
  id: string;
  object: "fault";
  deleted: true;
}
