/**
 * Texts in the characters that every bank of SEPA accepts: Latin letters without accents, digits,
 * space and `/ - ? : ( ) . , ' +` (EPC132-08, section 1.4).
 *
 * Other characters are replaced as in the conversion table of the European Payments Council
 * (EPC217-08), with these exceptions: `ü` becomes `ue` and `ß` becomes `ss`, which the German banks
 * prefer; letters of languages that came to SEPA after the table have their usual Latin spelling.
 */

/** A character that banks do not accept. */
const OTHER = /[^A-Za-z0-9/\-?:().,'+ ]/gu;

/** The replacement of a character that the table does not know (EPC217-08, section 6.2). */
const UNKNOWN = ".";

/** Replacements that the decomposition of Unicode does not give: a character, and its text. */
const REPLACEMENTS: ReadonlyMap<string, string> = new Map([
  ...pairs("Ä Ae Ö Oe Ü Ue ä ae ö oe ü ue ß ss ẞ SS"),
  ...pairs(
    "Æ A æ a Ø O ø o Œ O œ o Ð D ð d Đ D đ d Þ T þ t Ħ H ħ h ı i Ĳ I ĳ i Ł L ł l Ŀ L ŀ l Ŧ T ŧ t",
  ),
  ...pairs("€ E & + _ - ~ - – - — - ‑ - @ (at) ; , [ ( ] ) { ( } ) < ( > ) \\ / | / ¿ ? ⁄ /"),
  ...pairs("\" ' ` ' ´ ' ‘ ' ’ ' “ ' ” ' „ ' « ' » '"),
  ...bothCases("α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s τ t υ y"),
  ...bothCases("φ f χ ch ψ ps ω o"),
  ...pairs("ς s"),
  ...bothCases("а a б b в v г g д d е e ж zh з z и i й y к k л l м m н n о o п p р r с s т t у u"),
  ...bothCases("ф f х h ц ts ч ch ш sh щ sht ъ a ь y ю yu я ya"),
  // Serbian, Macedonian, Ukrainian and Russian.
  ...bothCases("ђ dj ј j љ lj њ nj ћ c џ dz ѓ g ќ k ѕ dz ы y э e є ye і i ї i ґ g"),
]);

/**
 * Converts a text to the characters of SEPA, with single spaces and none at its ends. The result
 * can be longer than the text.
 */
export function toSepaText(text: string): string {
  return convert(text.normalize("NFC")).replace(/ +/g, " ").trim();
}

/** Reports whether a text in the characters of SEPA says anything: it has a letter or a digit. */
export function saysAnything(sepa_text: string): boolean {
  return /[A-Za-z0-9]/.test(sepa_text);
}

function convert(text: string): string {
  return text.replace(OTHER, replacementOf);
}

function replacementOf(character: string): string {
  if (/\s/.test(character)) return " ";
  const replacement = REPLACEMENTS.get(character);
  if (replacement !== undefined) return replacement;
  // An accented letter is a letter and a mark, and a wide or raised character has a usual form.
  const usual = character.normalize("NFKD").replace(/\p{M}/gu, "");
  return usual === character ? UNKNOWN : convert(usual);
}

function pairs(list: string): [string, string][] {
  const words = list.split(" ");
  return words.flatMap((word, at) => at % 2 === 0 ? [[word, words[at + 1]!]] : []);
}

function bothCases(list: string): [string, string][] {
  return pairs(list).flatMap(([letter, latin]): [string, string][] => [
    [letter, latin],
    [letter.toUpperCase(), latin.toUpperCase()],
  ]);
}
