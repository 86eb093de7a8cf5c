/** The error for an instrument that is not active. */

import { ApiError } from "../core/errors.ts";
import type { Instrument } from "../schema/instrument.ts";

export function notActive(
  action: string,
  { status, ended_reason }: Pick<Instrument, "status"> & Partial<Instrument>,
): ApiError {
  const why = {
    pending: "the payment that saves it has no result yet",
    failed: "the payment that was to save it was not successful",
    active: "it is active",
    ended: `it has ended: ${ended_reason}`,
  }[status];
  return new ApiError("invalid_state", `Cannot ${action} the instrument: ${why}`, {
    current_status: status,
    allowed: [],
  });
}
