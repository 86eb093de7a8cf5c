/** The search of the documentation: what the build indexes and the page looks up. */

import type { Options } from "minisearch";

export interface SearchedSection {
  /** Address of the section, relative to the folder of the documentation. */
  id: string;
  page: string;
  /** The heading; empty for the beginning of a page. */
  heading: string;
  text: string;
  /** The beginning of the text, which a result shows. */
  excerpt: string;
}

/** Characters of a section that a result shows. */
export const EXCERPT_LENGTH = 140;

/** The options. A heading counts more than the text, and the end of a word may be missing. */
export const SEARCH_OPTIONS: Options<SearchedSection> = {
  fields: ["heading", "page", "text"],
  storeFields: ["page", "heading", "excerpt"],
  searchOptions: {
    boost: { heading: 4, page: 2 },
    prefix: true,
    fuzzy: (term) => term.length > 4 ? 0.2 : false,
    combineWith: "AND",
  },
};
