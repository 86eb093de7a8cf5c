/** The body and the query of operations that take no fields. */

import * as z from "zod";

export const EmptyBody = z.object({});

/** A query without parameters. */
export const EmptyQuery = z.object({});
