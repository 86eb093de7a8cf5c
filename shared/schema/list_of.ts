/** The envelope of lists in responses (contract §5). */

import * as z from "zod";

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    object: z.literal("list"),
    url: z.string().describe("Path of the list"),
    data: z.array(item).describe(
      "The items, newest first. There can be fewer than `limit`, or none, while `has_more` is true",
    ),
    has_more: z.boolean()
      .describe("True if the list continues. Only this field shows the end of the list"),
    next_cursor: z.string().nullable().describe(
      "The value of `starting_after` for the next page. It need not be the id of one of the " +
        "items. Null if `has_more` is false",
    ),
    total: z.object({
      count: z.int().min(0).describe("The number of items, at most 10 000"),
      is_exact: z.boolean().describe("False: the list has more items than `count`"),
    }).nullable().optional().describe(
      "Of a request with `include=total`: how many items the list has. Null if that is not cheap: " +
        "with a filter that is not in an index",
    ),
  }).describe("A page of a list");
}
