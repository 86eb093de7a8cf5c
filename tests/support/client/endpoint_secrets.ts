/** Secrets of an endpoint, derived as the service derives them. */

import { deriveEndpointSecret } from "../../../shared/core/webhook_signature.ts";

const derive = (version: number) =>
  deriveEndpointSecret({
    master_secret: "a master secret for tests, 32 bytes or more",
    endpoint_id: "whe_00000000000000000000000001",
    version,
    salt: "0123456789abcdef",
  });

export const OLD_SECRET = derive(1);
export const NEW_SECRET = derive(2);
/** A secret that signs none of the deliveries. */
export const FOREIGN_SECRET = derive(9);
