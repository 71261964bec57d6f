"""The study of translators under attack (Hsieh et al., ACL 2019, §6): recurrent against self-attentive."""
