"""Language resources that attacks ask, one file each: synonyms, part of speech, stop words, look-alike characters."""
