/** The body and the query of operations that take none. */

import * as z from "zod";

/** A body that carries nothing. */
export const EmptyBody = z.object({});

/** A query that takes nothing. */
export const EmptyQuery = z.object({});
